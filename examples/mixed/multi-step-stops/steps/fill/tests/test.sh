#!/bin/bash

reward=0
if [[ "$(cat /app/final/state.txt)" == done ]]; then
    reward=1
fi
echo "$reward" > /logs/verifier/reward.txt
