#!/bin/bash
set -euo pipefail

here=$PWD
{
    echo "$EDITION"
    cat /app/build/lines
    find "$SHELF" -type f | wc -l
    echo "$here"
} > /app/report.txt
