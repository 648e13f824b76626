#!/bin/bash
set -euo pipefail

# `factor` prints "7: 7" for a prime and more fields for any other number.
seq 2 29 | factor | awk 'NF == 2 { print $2 }' > /app/primes.txt
echo 'factor(1) over 2..29' > /logs/artifacts/method.txt

# Not declared as an artifact: the verifier must not see it.
touch /app/scratch.txt
