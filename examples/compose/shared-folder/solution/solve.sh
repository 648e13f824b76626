#!/bin/bash
set -euo pipefail

awk '{ total += $1 } END { print total }' /desk/in > /desk/out
