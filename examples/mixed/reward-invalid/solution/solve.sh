#!/bin/bash
set -euo pipefail

seq 1 5 > /app/numbers.txt
