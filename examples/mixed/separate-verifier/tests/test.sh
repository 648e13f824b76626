#!/bin/bash

reward=0
if [[ "$(tr '\n' ' ' < /app/primes.txt)" == '2 3 5 7 11 13 17 19 23 29 ' ]] &&
    [[ -s /logs/artifacts/method.txt ]] &&
    [[ ! -e /app/scratch.txt ]]; then
    reward=1
fi
echo "$reward" > /logs/verifier/reward.txt
