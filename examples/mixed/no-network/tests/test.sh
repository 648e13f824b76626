#!/bin/bash
# Two facts are graded: the agent's own finding, and that nothing answers while grading either, by name or address.

reachable() {
    timeout 1 bash -c ": < /dev/tcp/$1/$2"
}

reward=0
if [[ "$(cat /app/network.txt)" == offline ]] && ! reachable example.com 80 && ! reachable 1.1.1.1 443; then
    reward=1
fi
echo "$reward" > /logs/verifier/reward.txt
