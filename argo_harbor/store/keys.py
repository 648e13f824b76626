"""What a key may be. Names in keys come from sandboxes and from other people's stores, so none is trusted."""

from __future__ import annotations

import re

_NO_KEY = re.compile(r"(?:\A|/)\.{0,2}(?:/|\Z)|\0")
"""A part that is empty, `.` or `..`, or a NUL."""


def is_key(key: str) -> bool:
    """Whether a text names an object below the root: relative, without empty parts, `.`, `..` and NUL."""
    # The plain tests come first: listings and merges ask a hundred thousand times.
    suspicious = not key or key[0] in "/." or "/." in key or "//" in key or key[-1] == "/" or "\0" in key
    return not (suspicious and _NO_KEY.search(key))


def check_key(key: str) -> str:
    """The key itself. Raises ValueError for what is none."""
    if not is_key(key):
        raise ValueError(f"no key of a store: {key!r}")
    return key
