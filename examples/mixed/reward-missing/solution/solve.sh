#!/bin/bash
set -euo pipefail

echo ready > /app/state.txt
