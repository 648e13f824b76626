#!/bin/bash

reward=0
if [[ -f /app/here && ! -s /app/here ]]; then
    reward=1
fi
echo "$reward" > /logs/verifier/reward.txt
