"""What planning must know of a Dockerfile without building it: its base images and its final WORKDIR.

Light on purpose: continuation lines, comments, parser directives and here-documents are understood, build
arguments only where FROM uses a default. The final WORKDIR follows Harbor's reading of it, because Harbor
runs commands there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

_DIRECTIVE = re.compile(r"#\s*(\w+)\s*=\s*(\S+)\s*$")
_HEREDOC = re.compile(r"<<(-?)(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\2")
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))")
_HEREDOC_INSTRUCTIONS = frozenset({"RUN", "COPY", "ADD"})


class Dockerfile(NamedTuple):
    """What was read."""

    bases: tuple[str, ...]
    """Images named by FROM, in order, once each; build stages and `scratch` left out."""
    workdir: str
    """Absolute, empty when the final stage sets none."""


class Instruction(NamedTuple):
    """One instruction, its continuation lines joined."""

    line: int
    """Counted from 1."""
    name: str
    """Upper case."""
    value: str
    heredocs: tuple[str, ...] = ()
    """Bodies of its here-documents."""


def read_dockerfile(text: str) -> Dockerfile:
    """Bases and final working folder. Never fails: what is no instruction is passed over."""
    arguments: dict[str, str] = {}
    stages: set[str] = set()
    bases: list[str] = []
    workdir = ""
    started = False
    for instruction in instructions(text):
        if instruction.name == "ARG" and not started:
            name, equals, default = instruction.value.partition("=")
            arguments[name.strip()] = default.strip().strip("'\"") if equals else ""
        elif instruction.name == "FROM":
            started = True
            workdir = ""
            words = [word for word in instruction.value.split() if not word.startswith("--")]
            image = _expand(words[0], arguments) if words else ""
            if image and image.lower() not in stages and image != "scratch" and image not in bases:
                bases.append(image)
            if len(words) == 3 and words[1].upper() == "AS":
                stages.add(words[2].lower())
        elif instruction.name == "WORKDIR" and instruction.value:
            value = instruction.value
            workdir = value if value.startswith("/") else str(PurePosixPath(workdir or "/") / value)
    return Dockerfile(tuple(bases), workdir)


def instructions(text: str) -> Iterator[Instruction]:
    """Every instruction in order, here-documents taken out of the following lines."""
    lines = text.splitlines()
    escape = _escape_character(lines)
    number = 0
    while number < len(lines):
        first = number
        joined, number = _join(lines, number, escape)
        words = joined.split(None, 1)
        if not words:
            continue
        name = words[0].upper()
        bodies: list[str] = []
        if name in _HEREDOC_INSTRUCTIONS:
            for dash, _, word in _HEREDOC.findall(joined):
                body, number = _heredoc(lines, number, word, strip_tabs=bool(dash))
                bodies.append(body)
        yield Instruction(first + 1, name, words[1].strip() if len(words) > 1 else "", tuple(bodies))


def _escape_character(lines: list[str]) -> str:
    for line in lines:
        match = _DIRECTIVE.match(line.strip())
        if match is None:
            break
        if match[1].lower() == "escape" and match[2] in {"\\", "`"}:
            return match[2]
    return "\\"


def _join(lines: list[str], number: int, escape: str) -> tuple[str, int]:
    """One logical line, without comments and empty lines in the middle, and the number of the next."""
    parts: list[str] = []
    while number < len(lines):
        line = lines[number]
        number += 1
        bare = line.strip()
        if bare.startswith("#") or (parts and not bare):
            if parts:
                continue
            break
        if bare.endswith(escape):
            parts.append(line.rstrip()[: -len(escape)])
            continue
        parts.append(line)
        break
    return "".join(parts), number


def _heredoc(lines: list[str], number: int, word: str, *, strip_tabs: bool) -> tuple[str, int]:
    body: list[str] = []
    while number < len(lines):
        line = lines[number].lstrip("\t") if strip_tabs else lines[number]
        number += 1
        if line == word:
            break
        body.append(line)
    return "\n".join(body) + "\n", number


def _expand(word: str, arguments: dict[str, str]) -> str:
    return _VARIABLE.sub(lambda match: arguments.get(match[1] or match[3], "") or match[2] or "", word)
