"""What `--harbor-hub` takes: `org/name`, alone or with `@tag`, `@revision` or `@sha256:<64 hex>`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from argo_harbor.errors import UsageError
from argo_harbor.sources.member import printable

_WORD = r"[a-zA-Z0-9][a-zA-Z0-9._-]*"
_NAME = re.compile(rf"({_WORD})/({_WORD})")
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_LONGEST = 200
"""Characters of a name: it becomes two folders of the cache."""
_TAG = re.compile(rf"(?![0-9]{{10}}){_WORD}")
"""Also the revisions, which are numbers of at most nine digits."""


@dataclass(frozen=True, slots=True)
class HubRef:
    """One version of a dataset, as a user names it."""

    name: str
    """`org/name`."""
    ref: str = "latest"
    """Tag, revision, or `sha256:` and 64 hex."""

    @property
    def digest(self) -> str:
        """The 64 hex of a digest, else nothing."""
        pinned = _DIGEST.fullmatch(self.ref)
        return pinned.group(1) if pinned else ""

    def __str__(self) -> str:
        return f"{self.name}@{self.ref}"


def is_package_name(text: str) -> bool:
    """Whether `text` is `org/name` as the Hub has it; nothing else may become a path of the cache."""
    return _NAME.fullmatch(text) is not None and ".." not in text and len(text) <= _LONGEST


def parse_ref(text: str) -> HubRef:
    """Raises UsageError `unknown_flag_value` for anything that names no dataset."""
    name, at, ref = text.partition("@")
    if not is_package_name(name):
        raise _malformed(text, "write ORG/NAME, as in --harbor-hub terminal-bench/terminal-bench-2")
    if not at:
        return HubRef(name)
    if ref.startswith("sha256:"):
        if not _DIGEST.fullmatch(ref):
            raise _malformed(text, "a digest is sha256: and all of its 64 characters 0-9 and a-f")
    elif not _TAG.fullmatch(ref) or len(ref) > _LONGEST:
        raise _malformed(text, "after @ stands a tag, a revision number or sha256:<64 hex>")
    return HubRef(name, ref)


def _malformed(text: str, hint: str) -> UsageError:
    return UsageError("unknown_flag_value", f"{printable(text)[:300]!r} is no dataset of the Hub", hint)
