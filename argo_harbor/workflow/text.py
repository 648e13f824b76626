"""What text may stand in a workflow.

Argo evaluates `{{…}}` wherever it stands in a workflow, with no way to escape it, so nothing that a user, a
task or an admin wrote may reach the object unchecked: values are held against the plain pattern, prose is
taken apart.
"""

from __future__ import annotations

import re

from argo_harbor.workflow.objects import Parameter

PLAIN = re.compile(r"[A-Za-z0-9._/:@-]+")
"""Every value of a parameter or a patch that is not Argo's own `{{…}}`."""
_UNPLAIN = re.compile(r"[^A-Za-z0-9._/:@-]")
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
LABEL_KEY = re.compile(
    r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SECRET_REFERENCE = re.compile(r"([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)/([A-Za-z0-9._-]{1,253})")
"""`NAME/KEY` of a Kubernetes Secret."""

# An annotation is read in a list of runs: more than this is cut there anyway.
_PROSE_LENGTH = 200
_BRACES = str.maketrans("{}", "()")


def parameter(name: str, value: str) -> Parameter:
    """A parameter with a plain value.

    Raises ValueError for any other: the plan's models admit none, so that is a fault of ours, not of a user.
    """
    if not PLAIN.fullmatch(value):
        raise ValueError(f"parameter {name}: {value!r} must not stand in a workflow")
    return {"name": name, "value": value}


class Foreign(str):
    """Text of a task inside a pod patch: `emit` writes it so that Argo finds nothing in it to evaluate."""


def foreign(text: str) -> Foreign:
    """Text of a task for a pod patch, to reach its container as it is.

    A node expands `$(NAME)` in commands, variables and probes; a doubled dollar is a plain one there,
    whatever follows it.
    """
    return Foreign(text.replace("$", "$$"))


def verbatim(text: str) -> Foreign:
    """Text of a task for a field of a pod in which nothing is ever expanded."""
    return Foreign(text)


def escaped(text: str) -> str:
    r"""Double-quoted YAML of a text, every character that is not plain as `\u` or `\U` with its number."""
    return f'"{_UNPLAIN.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    # JSON's pair of \u escapes for one character is two characters, both invalid, in YAML.
    point = ord(found[0])
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"


def prose(text: str) -> str:
    """User text as an annotation may hold it: one line, no braces, at most 200 characters."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    short = line if len(line) <= _PROSE_LENGTH else f"{line[: _PROSE_LENGTH - 1]}…"
    return short.translate(_BRACES)


def inputs(name: str) -> str:
    """Argo's own reference to an input parameter of the template."""
    return f"{{{{inputs.parameters.{name}}}}}"
