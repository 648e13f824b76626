#!/bin/bash
# bash speaks enough HTTP for one question, so the image needs no curl.
set -euo pipefail

exec 3<> /dev/tcp/words/8000
printf 'GET %s HTTP/1.0\r\n\r\n' "/${WORDS_URL#http://*/}" >&3
read -r _ _ _ word < <(sed '1,/^\r*$/d' <&3)
echo "$word" > /app/word.txt
