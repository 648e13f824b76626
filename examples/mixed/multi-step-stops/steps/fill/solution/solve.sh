#!/bin/bash
set -euo pipefail

echo done > /app/final/state.txt
