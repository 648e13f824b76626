"""The outer form of a Dockerfile: directives, comments, continued lines, here-documents, flags.

Knows no instruction's meaning; `dockerfile.py` does. Follows the Dockerfile reference, "Format" and "Parser
directives".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_DIRECTIVE = re.compile(r"^#\s*([A-Za-z][A-Za-z0-9]*)\s*=\s*(.+?)\s*$")
_FLAG = re.compile(r"--([a-z][a-z-]*)(?:=(\S*))?(?:\s+|$)")
_HEREDOC = re.compile(r"""(?<!\S)\d*<<(-?)(["']?)([A-Za-z_][A-Za-z0-9_.]*)\2(?!\S)""")
_TAKES_HEREDOC = ("RUN", "COPY", "ADD")
_TAKES_FLAGS = ("RUN", "COPY", "ADD", "FROM", "HEALTHCHECK")


@dataclass(frozen=True, slots=True)
class Heredoc:
    name: str
    body: str
    """Ends with a newline unless empty; leading tabs are gone after `<<-`."""
    expands: bool
    """False when the name was quoted: variables stay as they are."""


@dataclass(frozen=True, slots=True)
class Instruction:
    line: int
    """Where it starts, from 1."""
    name: str
    """Upper case."""
    flags: tuple[tuple[str, str], ...]
    """`--name=value` before the arguments; the value is empty when there is none."""
    rest: str
    """Arguments, continued lines joined."""
    heredocs: tuple[Heredoc, ...] = ()

    @property
    def text(self) -> str:
        """Short form for messages and logs."""
        shown = f"{self.name} {self.rest}"
        return f"line {self.line}: {shown if len(shown) <= 120 else shown[:119] + '…'}"


class DockerfileError(ValueError):
    """Not a Dockerfile; `line` from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def read_instructions(text: str) -> tuple[list[Instruction], str]:
    """All instructions in order, and the escape character. Raises: DockerfileError."""
    lines = text.removeprefix("\ufeff").splitlines()
    escape = _escape_of(lines)
    found: list[Instruction] = []
    place = 0
    while place < len(lines):
        start = place
        joined = ""
        going_on = True
        while going_on and place < len(lines):
            line = lines[place]
            place += 1
            if line.lstrip().startswith("#") or (joined and not line.strip()):
                going_on = bool(joined)
                start = start if joined else place
                continue
            continued = line.rstrip()
            going_on = continued.endswith(escape)
            joined += continued[:-1] if going_on else line
        if not joined.strip():
            continue
        name, _, rest = joined.strip().partition(" ")
        name, _, tabbed = name.partition("\t")
        name, rest = name.upper(), f"{tabbed} {rest}".strip() if tabbed else rest.strip()
        heredocs, place = _heredocs(name, rest, lines, place)
        flags, rest = _flags(rest) if name in _TAKES_FLAGS else ((), rest)
        found.append(Instruction(start + 1, name, flags, rest, heredocs))
    return found, escape


def _escape_of(lines: list[str]) -> str:
    for number, line in enumerate(lines, 1):
        directive = _DIRECTIVE.match(line)
        if directive is None:
            break
        if directive.group(1).lower() == "escape":
            if directive.group(2) not in ("\\", "`"):
                raise DockerfileError(number, f"{directive.group(2)} cannot be the escape character")
            return directive.group(2)
    return "\\"


def _heredocs(name: str, rest: str, lines: list[str], place: int) -> tuple[tuple[Heredoc, ...], int]:
    if name not in _TAKES_HEREDOC:
        return (), place
    found = []
    for match in _HEREDOC.finditer(rest):
        strip_tabs, quote, end = match.groups()
        body: list[str] = []
        begin = place
        while True:
            if place >= len(lines):
                raise DockerfileError(begin, f"the here-document {end} never ends")
            line = lines[place].lstrip("\t") if strip_tabs else lines[place]
            place += 1
            if line == end:
                break
            body.append(line + "\n")
        found.append(Heredoc(end, "".join(body), expands=not quote))
    return tuple(found), place


def without_heredocs(rest: str) -> str:
    """The arguments with every `<<NAME` taken out."""
    return _HEREDOC.sub("", rest).strip()


def _flags(rest: str) -> tuple[tuple[tuple[str, str], ...], str]:
    flags = []
    while match := _FLAG.match(rest):
        flags.append((match.group(1), match.group(2) or ""))
        rest = rest[match.end() :]
    return tuple(flags), rest
