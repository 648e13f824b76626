#!/bin/bash

reward=0
if [[ "$(cat /app/report.txt)" == ready && "$(wc -l < /app/probes.log)" -ge 3 ]]; then
    reward=1
fi
echo "$reward" > /logs/verifier/reward.txt
