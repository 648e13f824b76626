#!/bin/bash
# Asks three times with words that nobody can know beforehand. A counter that goes up by one each time shows
# that one living process answers. Every question has its own limit, so a dead server is a 0 and not a hang.

ask() {
    timeout 3 bash -c 'printf "%s\n" "$1" > /app/requests; read -r reply < /app/replies; echo "$reply"' ask "$1"
}

reward=1
before=''
for _ in 1 2 3; do
    word="$RANDOM-$RANDOM-$(date +%s%N)"
    digest=$(printf '%s' "$word" | sha256sum)
    if [[ ! -p /app/requests || ! -p /app/replies ]] || ! reply=$(ask "$word"); then
        reward=0
        break
    fi
    read -r count answer <<< "$reply"
    if [[ "$answer" != "${digest%% *}" ]] || [[ -n "$before" && "$count" != "$((before + 1))" ]]; then
        reward=0
        break
    fi
    before=$count
done
echo "$reward" > /logs/verifier/reward.txt
