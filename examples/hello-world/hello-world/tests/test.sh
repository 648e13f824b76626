#!/bin/bash
# The exit status of this script means nothing: only the reward file counts. So it is written in every case.

reward=0
if [[ "$(cat /app/hello.txt)" == 'Hello, world!' ]]; then
    reward=1
fi
echo "$reward" > /logs/verifier/reward.txt
