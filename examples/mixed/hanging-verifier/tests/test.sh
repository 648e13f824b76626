#!/bin/bash
# Broken on purpose: waits for a child that never ends and that no polite signal stops.

(
    trap '' TERM INT HUP
    exec sleep 3600
) &
wait
echo 1 > /logs/verifier/reward.txt
