#!/bin/bash
set -euo pipefail

cut -d , -f 2 /app/orders.csv | awk '{ sum += $1 } END { print sum, "EUR" }' > /app/total.txt
