#!/bin/bash
# Half the work on purpose: /app/final is missing, the reward of 0.5 is below this step's min_reward.
set -euo pipefail

mkdir /app/drafts
