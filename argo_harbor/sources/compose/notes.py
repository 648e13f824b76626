"""Collects what is wrong with a compose file, all of it, each with its key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from argo_harbor.errors import Finding
from argo_harbor.sources.compose.values import words

CODE = "invalid_compose_file"
ANOTHER_WAY = "leave it out, or leave the task out with --tasks"


class Notes:
    """Findings about one file."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.findings: list[Finding] = []

    def refuse(self, key: str, message: str, hint: str = ANOTHER_WAY, *, code: str = CODE) -> None:
        """Note one finding; the same one twice is noted once."""
        finding = Finding(code, message, hint, file=self._file, key=key)
        if finding not in self.findings:
            self.findings.append(finding)

    def tried[T](self, key: str, read: Callable[[Any], T], value: object, default: T) -> T:
        """What `read` makes of the value; `default`, and a finding, where that is a ValueError."""
        try:
            return read(value)
        except ValueError as error:
            self.refuse(key, str(error), "correct the value")
            return default

    def words(self, key: str, value: object) -> tuple[str, ...]:
        """The value as a command; nothing is an empty one."""
        nothing: tuple[str, ...] = ()
        return self.tried(key, words, value, nothing) if value else nothing

    def mapping(self, key: str, value: object, what: str = "a mapping") -> dict[str, Any]:
        """The value as a mapping; nothing counts as an empty one, anything else as a finding."""
        if isinstance(value, dict):
            return value
        if value is not None:
            self.refuse(key, f"must be {what}", "correct the value")
        return {}

    def items(self, key: str, value: object) -> list[Any]:
        """The value as a list; nothing counts as an empty one, anything else as a finding."""
        if isinstance(value, list):
            return value
        if value is not None:
            self.refuse(key, "must be a list", "correct the value")
        return []

    def only(
        self, table: str, data: Mapping[str, Any], allowed: Iterable[str], reasons: Mapping[str, str]
    ) -> None:
        """A finding for each key that is not allowed, with its reason where there is one."""
        known = frozenset(allowed)
        for key in data:
            if key in known or key.startswith("x-"):
                continue
            where = f"{table}.{key}" if table else key
            reason = reasons.get(key)
            if reason:
                self.refuse(where, reason)
            else:
                self.refuse(where, "is no key that is mapped to containers of a pod")
