#!/bin/bash
# Broken on purpose: the mean of no measurements. "nan" is a float, but no reward: it would poison every mean.

measured=0
if [[ "$measured" -gt 0 ]]; then
    awk -v sum=0 -v measured="$measured" 'BEGIN { print sum / measured }' > /logs/verifier/reward.txt
else
    echo nan > /logs/verifier/reward.txt
fi
