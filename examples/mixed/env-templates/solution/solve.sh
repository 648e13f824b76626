#!/bin/bash
set -euo pipefail

echo "$GREETING $NAME$MARK" > /app/greeting.txt
