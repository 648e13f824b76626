#!/bin/bash
set -euo pipefail

echo done > /app/state.txt
