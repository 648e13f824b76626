#!/bin/bash
set -euo pipefail

state=offline
if timeout 1 bash -c ': < /dev/tcp/example.com/80'; then
    state=online
fi
echo "$state" > /app/network.txt
