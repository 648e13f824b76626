#!/bin/bash
# Several rewards at once. `reward` is the one that is reported first; the others explain it.

cases=0
right=0
while IFS='|' read -r title slug; do
    cases=$((cases + 1))
    if [[ "$(timeout 5 bash /app/slug.sh "$title")" == "$slug" ]]; then
        right=$((right + 1))
    fi
done < /tests/cases.txt

brevity=0
if [[ -f /app/slug.sh && "$(wc -l < /app/slug.sh)" -le 10 ]]; then
    brevity=1
fi

awk -v right="$right" -v cases="$cases" -v brevity="$brevity" 'BEGIN {
    correctness = right / cases
    printf "{\"reward\": %.4f, \"correctness\": %.4f, \"brevity\": %d}\n", \
        0.8 * correctness + 0.2 * brevity, correctness, brevity
}' > /logs/verifier/reward.json
