"""The secrets that a Dockerfile mounts: read for BuildKit's client, and kept out of everything else.

The daemon asks its client for a secret while the step that mounts it runs. A step may print it: so what it
says is looked through before it is shown or recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from argo_harbor.workflow import names

SHORTEST = 4
"""Characters of a value, or of one of its lines, that are looked for: less stands everywhere by chance."""


@dataclass(frozen=True, slots=True)
class Redactor:
    """Puts a mark in place of secret values."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Id by text."""

    @classmethod
    def of(cls, secrets: Mapping[str, bytes]) -> Redactor:
        """Looks for the values as a whole and for each of their lines."""
        texts: dict[str, str] = {}
        for identity, value in secrets.items():
            whole = value.decode(errors="replace")
            for text in (whole.strip(), *(line.strip() for line in whole.splitlines())):
                if len(text) >= SHORTEST:
                    texts.setdefault(text, identity)
        return cls(texts)

    def __call__(self, text: str) -> str:
        if not self.values:
            return text
        # The longest first, so that a line does not take the whole apart.
        longest = sorted(self.values, key=len, reverse=True)
        pattern = "|".join(map(re.escape, longest))
        return re.sub(pattern, lambda found: f"[secret {self.values[found[0]]}]", text)


@dataclass(frozen=True, slots=True)
class BuildSecrets:
    """What one build may mount."""

    files: Mapping[str, Path] = field(default_factory=dict)
    """By id."""
    missing: tuple[tuple[str, str], ...] = ()
    """Id and `NAME/KEY` of those that the namespace does not have."""
    redact: Redactor = field(default_factory=Redactor)


def read_secrets(secrets: Iterable[tuple[str, str]], folder: Path) -> BuildSecrets:
    """Reads `<folder>/<id>/value` of each; `secrets` are ids with their `NAME/KEY`."""
    files: dict[str, Path] = {}
    missing: list[tuple[str, str]] = []
    values: dict[str, bytes] = {}
    for identity, reference in secrets:
        file = folder / identity / names.BUILD_SECRET_FILE
        try:
            values[identity] = file.read_bytes()
        except OSError:
            missing.append((identity, reference))
        else:
            files[identity] = file
    return BuildSecrets(files, tuple(missing), Redactor.of(values))
