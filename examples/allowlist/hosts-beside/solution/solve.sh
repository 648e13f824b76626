#!/bin/bash
set -euo pipefail

for host in example.com www.example.org example.net; do
    state=closed
    if timeout 5 bash -c ": < /dev/tcp/$host/80"; then
        state=open
    fi
    echo "$host $state"
done > /app/found.txt
