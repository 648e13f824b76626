#!/bin/bash

reward=0
if [[ "$(cat /app/count.txt)" == 4 ]]; then
    reward=1
fi
echo "$reward" > /logs/verifier/reward.txt
