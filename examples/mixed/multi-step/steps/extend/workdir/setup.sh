#!/bin/bash
# The files of workdir/ are in the working directory now, this script among them. It runs before the agent.
set -euo pipefail

cat more-orders.csv >> orders.csv
rm more-orders.csv
