"""`${NAME}` in a task's environment maps and MCP headers, as Harbor resolves them.

An environment value is a template only as a whole; a header may hold several. Read by the task models, to
refuse headers with credentials in them, and by planning, to learn which variables a task asks for.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

_WHOLE = re.compile(r"\$\{([^}:]+)(?::-(.*))?\}")
_EMBEDDED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SENSITIVE = re.compile(r"KEY|SECRET|TOKEN(?!S)|PASSWORD|CREDENTIAL|AUTH", re.IGNORECASE)
_REFERENCE = r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::-)?\}"
_ONLY_REFERENCES = re.compile(rf"\s*(?:[A-Za-z]+\s+)?{_REFERENCE}(?:[\s:-]*{_REFERENCE})*\s*")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class Variable(NamedTuple):
    """A variable that a value asks for."""

    name: str
    default: str | None
    """None when the variable must be set."""


def requested_variable(value: str) -> Variable | None:
    """The variable of an environment value, None for a literal."""
    match = _WHOLE.fullmatch(value)
    return Variable(match[1], match[2]) if match else None


def requested_in_header(value: str) -> list[Variable]:
    """Every variable embedded in a header's value, in order."""
    return [Variable(match[1], match[2]) for match in _EMBEDDED.finditer(value)]


def check_names(env: Mapping[str, str]) -> None:
    """Raises ValueError for a name that no process environment can hold."""
    for name, value in env.items():
        if not name or "=" in name or "\0" in name:
            raise ValueError(f"{name!r} cannot be the name of a variable")
        if "\0" in value:
            raise ValueError(f"the value of {name} must not hold a NUL character")


def check_headers(headers: Mapping[str, str]) -> None:
    """Raises ValueError for headers that are malformed or hold a literal credential."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no HTTP header name")
        if "\r" in value or "\n" in value:
            raise ValueError(f"header {name} must not contain a line break")
        if "${" in _EMBEDDED.sub(" ", value) or any(
            "${" in (v.default or "") for v in requested_in_header(value)
        ):
            raise ValueError(f"header {name} holds a malformed ${{NAME}}")
        if _holds_credential(name, value):
            raise ValueError(f"header {name} must name its credential as ${{NAME}} without a default")


def _holds_credential(name: str, value: str) -> bool:
    sensitive = bool(_SENSITIVE.search(name)) or name.lower() in {"cookie", "set-cookie"}
    for variable in requested_in_header(value):
        if variable.default and (sensitive or _SENSITIVE.search(variable.name)):
            return True
    return sensitive and bool(value.strip()) and not _ONLY_REFERENCES.fullmatch(value)
