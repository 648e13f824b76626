#!/bin/bash

reward=0
if cmp /tests/expected/table.tsv /app/out/table.tsv && [[ ! -e /app/out/copy.tmp ]]; then
    reward=1
fi
echo "$reward" > /logs/verifier/reward.txt
