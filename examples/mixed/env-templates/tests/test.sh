#!/bin/bash
# MARK belongs to the solution: it must not be set here.

reward=0
if [[ "$(cat /app/greeting.txt)" == "$EXPECTED_GREETING $EXPECTED_NAME!" && -z "${MARK+set}" ]]; then
    reward=1
fi
echo "$reward" > /logs/verifier/reward.txt
