#!/bin/bash
set -euo pipefail

grep -o fish words.txt | wc -l > count.txt
