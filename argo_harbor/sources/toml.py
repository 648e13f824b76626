"""TOML bytes from outside, parsed fast and no more liberally than Harbor parses them.

tomli also reads TOML 1.1. Harbor reads task files with the standard library, which may know only TOML 1.0,
and a task that only one of the two can read would fail in its pod instead of here.
"""

from __future__ import annotations

import json
import re
from typing import Any

import tomli

MAX_BYTES = 1 << 20
"""One MiB: far above any real task.toml, far below what would exhaust memory."""

# What TOML 1.1 allows beyond 1.0: line breaks in inline tables, \e and \x escapes, times without seconds.
_PERHAPS_1_1 = re.compile(r"\\[ex]|\d:\d\d(?!:)")
# The parser bounds decimal numbers only; others could be longer than Python writes out.
_PERHAPS_HUGE = re.compile(r"0[xob][0-9a-fA-F_]{1000}")


class BrokenToml(ValueError):
    """The text is no TOML; the message names line and column where there is one."""


def parse_toml(data: bytes) -> dict[str, Any]:
    """Raises BrokenToml."""
    if len(data) > MAX_BYTES:
        raise BrokenToml(f"has {len(data)} bytes, more than the {MAX_BYTES} that are read")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BrokenToml(f"is not UTF-8 (line {line})") from error
    try:
        parsed = tomli.loads(text)
        if "{" in text or _PERHAPS_1_1.search(text):
            import tomllib

            tomllib.loads(text)
        if _PERHAPS_HUGE.search(text):
            json.dumps(parsed, default=str)
    except RecursionError as error:
        raise BrokenToml("is nested too deeply") from error
    except ValueError as error:
        raise BrokenToml(str(error)) from error
    return parsed
