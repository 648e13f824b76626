#!/bin/bash
set -euo pipefail

exec 3<> /dev/tcp/example.com/80
printf 'GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n' >&3
timeout 20 cat <&3 > /app/response.txt
