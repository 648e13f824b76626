#!/bin/bash
# The container still runs while the verifier grades, and says the same word to it.

exec 3<> /dev/tcp/words/8000
printf 'GET /cgi-bin/word HTTP/1.0\r\n\r\n' >&3
read -r _ _ _ word < <(sed '1,/^\r*$/d' <&3)
if [[ -n "$word" && "$(cat /app/word.txt 2> /dev/null)" == "$word" ]]; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
