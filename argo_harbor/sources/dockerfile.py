"""What planning must know of a Dockerfile without building it: its base images, its final WORKDIR, and the
names of the build arguments and secrets that it takes.

Light on purpose: continuation lines, comments, parser directives and here-documents are understood, build
arguments only where FROM uses them. The final WORKDIR follows Harbor's reading of it, because Harbor runs
commands there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from argo_harbor.model.taskset import VariableBases

_DIRECTIVE = re.compile(r"#\s*(\w+)\s*=\s*(\S+)\s*$")
_HEREDOC = re.compile(r"<<(-?)(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\2")
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))")
_HEREDOC_INSTRUCTIONS = frozenset({"RUN", "COPY", "ADD"})
_ARGUMENT = re.compile(r"""([A-Za-z_]\w*)(=("[^"]*"|'[^']*'|\S*))?(?:\s+|$)""")
_FLAG = re.compile(r"--(\w+)=(\S+)\s+")


class Dockerfile(NamedTuple):
    """What was read."""

    bases: tuple[str, ...]
    """Images named by FROM, in order, once each; build stages and `scratch` left out."""
    workdir: str
    """Absolute, empty when the final stage sets none."""
    arguments: tuple[str, ...] = ()
    """Names that ARG declares anywhere, sorted."""
    secrets: tuple[str, ...] = ()
    """Ids that RUN mounts as secrets, sorted."""
    required_secrets: tuple[str, ...] = ()
    """Those without which RUN fails."""
    variable_bases: VariableBases | None = None
    """Set when build arguments stand in a FROM."""


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
    """What is to be known of it. Never fails: what is no instruction is passed over."""
    defaults: dict[str, str] = {}
    names: set[str] = set()
    secrets: dict[str, bool] = {}
    stages: list[str] = []
    froms: list[str] = []
    workdir = ""
    for instruction in instructions(text):
        if instruction.name == "ARG":
            for name, equals, default in _ARGUMENT.findall(instruction.value):
                names.add(name)
                if not froms:
                    defaults[name] = default.strip("'\"") if equals else ""
        elif instruction.name == "FROM":
            workdir = ""
            words = [word for word in instruction.value.split() if not word.startswith("--")]
            if words and words[0].lower() not in stages:
                froms.append(words[0])
            if len(words) == 3 and words[1].upper() == "AS":
                stages.append(words[2].lower())
        elif instruction.name == "WORKDIR" and instruction.value:
            value = instruction.value
            workdir = value if value.startswith("/") else str(PurePosixPath(workdir or "/") / value)
        elif instruction.name == "RUN":
            for identity, required in _secret_mounts(instruction.value):
                secrets[identity] = secrets.get(identity, False) or required
    written = VariableBases(tuple(froms), tuple(stages), tuple(defaults.items()))
    return Dockerfile(
        base_images(written),
        workdir,
        tuple(sorted(names)),
        tuple(sorted(secrets)),
        tuple(sorted(identity for identity, required in secrets.items() if required)),
        written if any("$" in word for word in froms) else None,
    )


def base_images(written: VariableBases, values: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Images that FROM names when build arguments have these values, in order, once each; build stages and
    `scratch` left out."""
    given = values or {}
    arguments: dict[str, str] = {}
    for name, default in written.defaults:
        arguments[name] = given[name] if name in given else _expand(default, arguments)
    images = (_expand(word, arguments) for word in written.words)
    known = {*written.stages, "scratch", ""}
    return tuple(dict.fromkeys(image for image in images if image.lower() not in known))


def _secret_mounts(value: str) -> Iterator[tuple[str, bool]]:
    """Id of each secret that a RUN mounts, and whether it fails without it."""
    place = 0
    while flag := _FLAG.match(value, place):
        place = flag.end()
        if flag[1] != "mount":
            continue
        options = [option.partition("=") for option in flag[2].strip("\"'").split(",")]
        named = {key.lower(): text if equals else "true" for key, equals, text in options}
        if named.get("type") == "secret":
            target = named.get("target") or named.get("dst") or named.get("destination") or ""
            identity = named.get("id") or PurePosixPath(target).name
            if identity:
                yield identity, named.get("required", "false").lower() in ("true", "1")


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


def _expand(word: str, arguments: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda match: arguments.get(match[1] or match[3], "") or match[2] or "", word)
