#!/bin/bash
set -euo pipefail

for folder in /app/out /logs/artifacts; do
    mkdir -p "$folder"
    cd "$folder"
    echo 'all links are beside me' > report.txt
    ln -s report.txt inside
    ln -s /etc/passwd outside
    ln -s ../../etc/passwd above
    ln -s /nowhere/at/all dangling
    ln -s . loop
done
mkdir /app/out/nested
ln -s ../report.txt /app/out/nested/up
