#!/bin/bash
# Partial credit: reward.txt may hold any finite number, here the share of right files.

right=0
for name in by-name.txt by-size.txt largest.txt; do
    if cmp "/tests/expected/$name" "/app/$name"; then
        right=$((right + 1))
    fi
done
awk -v right="$right" 'BEGIN { print right / 3 }' > /logs/verifier/reward.txt
