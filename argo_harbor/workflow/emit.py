r"""Writes an object as YAML that every YAML reader understands the same way.

Argo's program reads with go-yaml, kubectl with another version of it, the tests with PyYAML: they disagree
about `y`, `1e3`, `08` or `0o17`. So a string stands plain only where none of them can take it for anything
else; every other one is double-quoted with JSON's escapes. Text of several plain lines becomes a literal
block, so that patches and manifests stay readable. Used for whole workflows and for the YAML inside them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TypeGuard

from argo_harbor.workflow.text import Foreign, escaped

# Starts like a name or a path and has no character that means anything in YAML. `:` and `.` may stand
# inside only.
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_/@-]*(?:[.:]+[A-Za-z0-9_/@-]+)*")
# Words that YAML 1.1 reads as booleans or null; `=` and `<<` do not pass the pattern above.
_RESERVED = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
# A block's lines hold printable ASCII, do not end in spaces; the first decides the indentation and starts
# with none.
_BLOCK = re.compile(r"[!-~](?:[ -~]*[!-~])?(?:\n(?:[ -~]*[!-~])?)*\n[ -~]*[!-~]\n?")
# Readers give up looking for the colon behind 1024 characters.
_LONGEST_KEY = 1000
# Raw in YAML but invisible, a line break, or not a character of JSON-like text at all.
_ESCAPED = re.compile("[\x7f-\xa0\xad\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]|[^\x00-\uffff]")


def to_yaml(data: object) -> str:
    """One YAML document of mappings with string keys, lists, strings, integers and booleans; ends with a
    line feed.

    Raises TypeError for any other value, ValueError for half a surrogate pair or a key too long for YAML.
    """
    lines: list[str] = []
    if isinstance(data, Mapping) and data:
        _mapping(data, "", "", lines)
    elif _is_list(data) and data:
        _list(data, "", lines)
    else:
        lines.append(_scalar(data, ""))
    lines.append("")
    return "\n".join(lines)


def _mapping(data: Mapping[object, object], indent: str, first: str, lines: list[str]) -> None:
    """Append `data` with `indent`; its first line starts with `first`, the dash of a list item."""
    lead = first or indent
    for key, value in data.items():
        if not isinstance(key, str):
            raise TypeError(f"a key must be a string, not {key!r}")
        start = f"{lead}{_key(key)}:"
        lead = indent
        if isinstance(value, Mapping) and value:
            lines.append(start)
            _mapping(value, indent + "  ", "", lines)
        elif _is_list(value) and value:
            lines.append(start)
            _list(value, indent, lines)
        else:
            lines.append(f"{start} {_scalar(value, indent)}")


def _list(data: Sequence[object], indent: str, lines: list[str]) -> None:
    for item in data:
        if isinstance(item, Mapping) and item:
            _mapping(item, indent + "  ", f"{indent}- ", lines)
        elif _is_list(item) and item:
            lines.append(f"{indent}-")
            _list(item, indent + "  ", lines)
        else:
            lines.append(f"{indent}- {_scalar(item, indent)}")


def _scalar(value: object, indent: str) -> str:
    if isinstance(value, Foreign):
        return escaped(value)
    if isinstance(value, str):
        return _block(value, indent + "  ") if _BLOCK.fullmatch(value) else _string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Mapping):
        return "{}"
    if _is_list(value):
        return "[]"
    raise TypeError(f"{type(value).__name__} has no place in an emitted object")


def _key(text: str) -> str:
    written = _string(text)
    if len(written) > _LONGEST_KEY:
        raise ValueError(f"{text[:40]!r}… is too long for a key")
    return written


def _string(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    return _ESCAPED.sub(_escape, json.dumps(text, ensure_ascii=False))


def _block(text: str, indent: str) -> str:
    header = "|" if text.endswith("\n") else "|-"
    lines = (f"{indent}{line}" if line else "" for line in text.removesuffix("\n").split("\n"))
    return "\n".join((header, *lines))


def _escape(found: re.Match[str]) -> str:
    point = ord(found[0])
    if 0xD800 <= point <= 0xDFFF:
        raise ValueError(f"U+{point:04X} is half a character and cannot be written")
    # JSON's pair of \u escapes for one character is two characters, both invalid, in YAML.
    return f"\\u{point:04X}" if point <= 0xFFFF else f"\\U{point:08X}"


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
