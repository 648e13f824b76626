"""Names of tasks as entries of a workflow's DAG, and as they are shown there.

Argo takes letters, digits and dashes, compares names in expressions where a leading digit or a word of the
expression language would be misread, and hangs on a display name that does not end in a letter or digit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from argo_harbor.model.base import sha256_hex

MAX_LENGTH = 60
"""Below Argo's limits for entries (128) and display names (63)."""

RESERVED = frozenset(
    (
        "agent",
        "build",
        "chunk",
        "gate",
        "main",
        "merge",
        "network",
        "shard",
        "trial",
        "trial-verified",
        "verify",
        "watch",
    )
)
"""Entries and templates of every workflow."""
RESERVED_PREFIXES = ("build-", "chunk-", "network-", "shard-")
EXPRESSION_WORDS = frozenset(
    (
        "all",
        "and",
        "any",
        "contains",
        "count",
        "endswith",
        "false",
        "filter",
        "in",
        "len",
        "let",
        "map",
        "matches",
    )
) | {"nil", "none", "not", "one", "or", "startswith", "true"}

_OTHER = re.compile(r"[^A-Za-z0-9]+")
_PREFIX = "task-"
_TAIL = 8


def dag_names(names: Sequence[str]) -> list[str]:
    """One entry name for each task name (`org/name` or a folder), in order, all different.

    A task whose name needs no change, and collides with none, is called by the part behind `/`.
    """
    plain = [_plain(name) for name in names]
    count = Counter(name.lower() for name in plain)
    taken = {name.lower() for name in plain if count[name.lower()] == 1}
    found = []
    for name, short in zip(names, plain, strict=True):
        chosen, salt = short, 0
        while count[short.lower()] > 1 and (chosen == short or chosen.lower() in taken):
            chosen = _with_tail(short, f"{name}\0{salt}" if salt else name)
            salt += 1
        taken.add(chosen.lower())
        found.append(chosen)
    return found


def _plain(name: str) -> str:
    short = _OTHER.sub("-", name.rpartition("/")[2]).strip("-")
    lower = short.lower()
    if (
        len(short) < 2
        or short[0].isdigit()
        or lower in RESERVED
        or lower in EXPRESSION_WORDS
        or lower.startswith(RESERVED_PREFIXES)
    ):
        short = f"{_PREFIX}{short}" if short else f"{_PREFIX}{sha256_hex(name.encode())[:_TAIL]}"
    return short if len(short) <= MAX_LENGTH else _with_tail(short, name)


def _with_tail(short: str, source: str) -> str:
    head = short[: MAX_LENGTH - _TAIL - 1].rstrip("-")
    return f"{head}-{sha256_hex(source.encode())[:_TAIL]}"
