#!/bin/bash
# Broken on purpose: `set -e` ends the script at the first failure, here a file that the task's author forgot to ship,
# before any reward is written. Nobody knows then how good the agent was, so no number may stand for it.
set -euo pipefail

expected=$(cat /tests/expected.txt)
if [[ "$(cat /app/state.txt)" == "$expected" ]]; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
