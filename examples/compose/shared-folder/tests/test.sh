#!/bin/bash
# The verdict is the other container's: it looks once a second.

reward=0
for _ in $(seq 50); do
    [[ "$(cat /desk/verdict 2> /dev/null)" == right ]] && reward=1 && break
    [[ -s /desk/out ]] || break
    sleep 0.2
done
echo "$reward" > /logs/verifier/reward.txt
