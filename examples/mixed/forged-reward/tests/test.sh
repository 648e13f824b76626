#!/bin/bash

reward=0
if [[ "$(cat /app/answer.txt)" == 42 ]]; then
    reward=1
fi
echo "$reward" > /logs/verifier/reward.txt
