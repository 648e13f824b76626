#!/bin/bash
source /tests/grade.sh

reward_if file_is /app/total.txt "$EXPECTED_TOTAL $CURRENCY"
