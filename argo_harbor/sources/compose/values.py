"""The small languages inside a compose file: variables, durations, sizes, ports, commands, mounts.

Pure; each function raises ValueError with what is wrong, and `compose` says where.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_VARIABLE = re.compile(
    r"\$(?:(?P<escaped>\$)|(?P<bare>[A-Za-z_][A-Za-z0-9_]*)"
    r"|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<operator>:?[-?+])?(?P<rest>[^{}]*)\}|(?P<broken>))"
)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(h|ms|us|m|s)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "us": 0.000001}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([bkmg]?)(?:i?b)?", re.IGNORECASE)
_BYTES = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_PORT = re.compile(r"(?:.*:)?(?P<port>\d{1,5})(?:/(?P<protocol>tcp|udp))?")
MAX_PORT = 65535


class Variable(NamedTuple):
    """A variable that a text reads and that nobody has given a value yet."""

    name: str
    default: str | None


class Expanded(NamedTuple):
    """A text with what is known filled in."""

    text: str
    """The defaults stand in the place of the variables that are left."""
    left: tuple[Variable, ...]
    """Variables without a value, in order."""
    whole: bool
    """True when the text is one variable and nothing else."""


Known = Mapping[str, str | Variable]
"""Values by name; one that is a variable itself takes its value from there."""


def expand(text: str, known: Known) -> Expanded:
    """Fill in `${NAME}`, `${NAME:-default}`, `${NAME-default}`, `$NAME`; `$$` becomes `$`.

    Raises ValueError for anything else that begins with `$`.
    """
    left: list[Variable] = []
    parts: list[str] = []
    position = 0
    whole = False
    for match in _VARIABLE.finditer(text):
        parts.append(text[position : match.start()])
        position = match.end()
        if match["escaped"]:
            parts.append("$")
            continue
        value = _value(match, known, text)
        if isinstance(value, Variable):
            left.append(value)
            parts.append(value.default or "")
            whole = (match.start(), match.end()) == (0, len(text))
        else:
            parts.append(value)
    return Expanded("".join((*parts, text[position:])), tuple(left), whole)


def _value(match: re.Match[str], known: Known, text: str) -> str | Variable:
    name = match["name"] or match["bare"]
    operator = match["operator"] or ""
    odd = operator.endswith("+") or "$" in (match["rest"] or "") or (not operator and match["rest"])
    if not name or odd:
        raise ValueError(f"{text!r} is no text with ${{NAME}} or ${{NAME:-default}} in it; a plain $ is $$")
    default = match["rest"] if operator.endswith("-") else None
    value = known.get(name)
    if isinstance(value, Variable):
        return value._replace(default=value.default if value.default is not None else default)
    if value is None or (operator == ":-" and not value):
        return Variable(name, default)
    return value


def seconds(text: object) -> float:
    """A duration such as `1m30s`. Raises ValueError."""
    if isinstance(text, str) and text:
        found = _DURATION.findall(text)
        if "".join(number + unit for number, unit in found) == text:
            return sum(float(number) * _SECONDS[unit] for number, unit in found)
    raise ValueError(f"{text!r} is no duration; write 30s or 1m30s")


def megabytes(size: object) -> int:
    """A size such as `512m` or a number of bytes, in whole MiB, rounded up. Raises ValueError."""
    match = _SIZE.fullmatch(str(size)) if not isinstance(size, bool) else None
    amount = float(match[1]) * _BYTES[match[2].lower()] if match else 0.0
    if not 0 < amount < 1 << 44:
        raise ValueError(f"{size!r} is no size; write 512m or 1g")
    return math.ceil(amount / (1 << 20))


def number(value: object) -> float:
    """A positive number, written as one or as text. Raises ValueError."""
    try:
        found = float(str(value)) if not isinstance(value, bool) else 0.0
    except ValueError:
        found = 0.0
    if not 0 < found <= 1024:
        raise ValueError(f"{value!r} is no number above 0")
    return found


def port(entry: object) -> int:
    """The container's port of one entry of `ports` or `expose`. Raises ValueError."""
    if isinstance(entry, dict):
        entry = entry.get("target")
    match = _PORT.fullmatch(str(entry)) if not isinstance(entry, bool) else None
    found = int(match["port"]) if match else 0
    if not 0 < found <= MAX_PORT:
        raise ValueError(f"{entry!r} is no single port; write each container port by itself")
    return found


def words(value: object) -> tuple[str, ...]:
    """A command: a list of texts, or one text taken apart as a shell does. Raises ValueError."""
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            raise ValueError(f"{value!r} is no command: {error}") from error
    return tuple(texts(value))


def texts(value: object) -> Iterator[str]:
    """A list of texts and numbers as texts. Raises ValueError."""
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is no list")
    for item in value:
        yield scalar(item)


def scalar(value: object) -> str:
    """A text, number or truth value as the text that compose makes of it. Raises ValueError."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return check_text(str(value))
    raise ValueError(f"{value!r} is no text")


def check_text(text: str) -> str:
    """Raises ValueError for a text that no process can be given."""
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError("holds a character that no program can be given")
    return text
