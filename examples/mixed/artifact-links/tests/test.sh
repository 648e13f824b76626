#!/bin/bash
# Grades the links in the sandbox. What is collected from it holds none of them as links, and nothing of
# what they point at: whoever opens the results later must not be led to a file of their own machine.

points_to() {
    [[ -L "$1" && "$(readlink "$1")" == "$2" ]]
}

right=1
for folder in /app/out /logs/artifacts; do
    [[ -s "$folder/report.txt" ]] || right=0
    points_to "$folder/inside" report.txt || right=0
    points_to "$folder/outside" /etc/passwd || right=0
    points_to "$folder/above" ../../etc/passwd || right=0
    points_to "$folder/dangling" /nowhere/at/all || right=0
    points_to "$folder/loop" . || right=0
done
points_to /app/out/nested/up ../report.txt || right=0
echo "$right" > /logs/verifier/reward.txt
