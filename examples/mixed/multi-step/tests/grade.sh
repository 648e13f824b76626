#!/bin/bash
# Shared by the steps: the task's tests/ is copied to /tests first, then the step's own tests/ over it.

# Write reward 1 when the command given as arguments succeeds, else 0.
reward_if() {
    local reward=0
    if "$@"; then
        reward=1
    fi
    echo "$reward" > /logs/verifier/reward.txt
}

file_is() {
    [[ "$(cat "$1")" == "$2" ]]
}
