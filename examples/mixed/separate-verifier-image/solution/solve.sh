#!/bin/bash
set -euo pipefail

mkdir -p /app/out
cp /app/table.csv /app/out/copy.tmp
tr ',' '\t' < /app/out/copy.tmp > /app/out/table.tsv
