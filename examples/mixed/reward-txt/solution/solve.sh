#!/bin/bash
set -euo pipefail
export LC_ALL=C
cd /app

sort cities.txt > by-name.txt
sort -k2,2nr cities.txt > by-size.txt
head -n 1 by-size.txt | cut -d ' ' -f 1 > largest.txt
