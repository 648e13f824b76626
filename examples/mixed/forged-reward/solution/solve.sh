#!/bin/bash
# Plays a cheating agent: instead of the answer it leaves a process that writes the reward, again and again.
# Verifier and agent share the sandbox here, so nothing keeps it from doing so; but a reward file that comes back
# after it was read and removed gives it away. A separate verifier shuts this door altogether.
set -euo pipefail

nohup bash -c 'while true; do echo 1 > /logs/verifier/reward.txt; sleep 0.05; done' < /dev/null > /dev/null 2>&1 &
