#!/bin/sh
# Starts execd beside, or with EXECD_INIT in front of, a container's own program, as OpenSandbox's script of this
# name does.
set -e

EXECD="${EXECD:-/opt/opensandbox/execd}"
EXECD_ENVS="${EXECD_ENVS:-/opt/opensandbox/.env}"
export EXECD_ENVS
mkdir -p "$(dirname "$EXECD_ENVS")"
touch "$EXECD_ENVS"

if [ -n "${EXECD_BOOTSTRAP_PRE_SCRIPT:-}" ]; then
	case "$EXECD_BOOTSTRAP_PRE_SCRIPT" in
	*/*) . "$EXECD_BOOTSTRAP_PRE_SCRIPT" ;;
	*) . "./$EXECD_BOOTSTRAP_PRE_SCRIPT" ;;
	esac
fi

shell="${BOOTSTRAP_SHELL:-}"
[ -n "$shell" ] || shell="$(command -v bash || command -v sh)"
if [ -n "${BOOTSTRAP_CMD:-}" ]; then
	set -- "$shell" -c "$BOOTSTRAP_CMD"
elif [ "${1:-}" = -c ]; then
	shift
	set -- "$shell" -c "$*"
elif [ $# -eq 0 ]; then
	set -- "$shell"
fi

case "${EXECD_INIT:-}" in
1 | true | yes | on) exec "$EXECD" --init -- "$@" ;;
esac

"$EXECD" &
"$@" &
program=$!
trap 'kill -TERM "$program" 2>/dev/null || true; wait "$program" 2>/dev/null || true; exit 0' TERM
wait "$program"
