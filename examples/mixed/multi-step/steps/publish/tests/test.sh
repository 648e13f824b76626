#!/bin/bash
source /tests/grade.sh

reward_if file_is /logs/artifacts/report.txt "5 orders, 105 $CURRENCY"
