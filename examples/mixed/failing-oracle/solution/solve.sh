#!/bin/bash
# Wrong on purpose: `read` returns false for a last line without a newline, so the last number is lost.
# A run with the agent `oracle` finds such bugs before any model is paid for.
set -euo pipefail

sum=0
while read -r number; do
    sum=$((sum + number))
done < /app/numbers.txt
echo "$sum" > /app/sum.txt
