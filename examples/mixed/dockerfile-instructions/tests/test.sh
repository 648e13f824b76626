#!/bin/bash

reward=0
if [[ "$(tr '\n' ' ' < /app/report.txt)" == 'first 4 3 /app/shelf ' ]] &&
    [[ "$(cat /app/build/workdir)" == /app/shelf ]] &&
    [[ -f /app/lists/index.txt && -f /app/lists/catalogue.txt ]]; then
    reward=1
fi
echo "$reward" > /logs/verifier/reward.txt
