#!/bin/bash
# The page must have come, and the host must be out of reach again.

reachable() {
    timeout 2 bash -c ": < /dev/tcp/$1/80"
}

reward=0
if head -n 1 /app/response.txt | grep -q '^HTTP/1\.1 200' &&
    grep -qi 'example domain' /app/response.txt &&
    ! reachable example.com; then
    reward=1
fi
echo "$reward" > /logs/verifier/reward.txt
