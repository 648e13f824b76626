"""From a name of a ref to a commit, by the list of refs that a server gives."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import NamedTuple

from argo_harbor.errors import UsageError
from argo_harbor.sources.git.address import DEFAULT_FOLDER, FORMS, GitAddress
from argo_harbor.sources.member import printable

_FULL = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHORT = re.compile(r"[0-9a-f]{4,63}")
_LINE = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})\t(.+)")
_NAMED = re.compile(r"refs/(?:heads|tags)/(.+)")
_PLACES = ("refs/tags/", "refs/heads/", "refs/", "")
"""Where a name is looked for, in git's own order."""
_NEAR = 3
_MOST_PARTS = 20
"""Of a ref that is asked for by name."""

type Refs = Mapping[str, str]
"""Object by full name; an annotated tag stands with what it points to."""


class Wanted(NamedTuple):
    """What an address comes to."""

    object: str
    """Full id of a commit, or of something that leads to one."""
    ref: str
    """As the user named it."""
    folder: str
    """`.` for the whole repository."""


def parse_refs(printed: bytes) -> dict[str, str]:
    """Refs as `git ls-remote` prints them. Lines that are none are left out."""
    refs: dict[str, str] = {}
    for line in printed.decode(errors="surrogateescape").split("\n"):
        if found := _LINE.fullmatch(line):
            refs[found[2].removesuffix("^{}")] = found[1]
    return refs


def default_branch(printed: bytes) -> str:
    """The branch that `git ls-remote --symref <url> HEAD` names; empty for none."""
    found = re.search(rb"^ref: refs/heads/(\S+)\tHEAD$", printed, re.MULTILINE)
    return printable(found[1].decode(errors="replace")) if found else ""


def whole_commit(address: GitAddress) -> Wanted | None:
    """What an address that names a commit in full comes to: no list of refs is needed for it."""
    name = address.ref or (address.trail[0] if address.trail else "")
    if not _FULL.fullmatch(name):
        return None
    return Wanted(name, name, _folder(address, 1))


def look_up(address: GitAddress, refs: Refs) -> Wanted:
    """The longest ref that `address` can mean, and the folder that is left.

    A short commit is taken when it begins exactly one of the ids in `refs`. Raises UsageError
    `unknown_source_ref` with the names that are nearest.
    """
    lengths = range(len(address.trail), 0, -1) if address.trail else (0,)
    for length in lengths:
        name = "/".join(address.trail[:length]) if length else address.ref
        if found := _find(name, refs):
            return Wanted(found, name, _folder(address, length))
    name = address.trail[0] if address.trail else address.ref
    if _SHORT.fullmatch(name):
        begun = {found for found in refs.values() if found.startswith(name)}
        if len(begun) == 1:
            return Wanted(begun.pop(), name, _folder(address, 1))
    raise _unknown(address, name, refs)


def possible_refs(address: GitAddress) -> list[str]:
    """Every name of a ref that `address` can mean, the shortest first."""
    lengths = range(1, min(len(address.trail), _MOST_PARTS) + 1)
    return [address.ref] if address.ref else ["/".join(address.trail[:length]) for length in lengths]


def _find(name: str, refs: Refs) -> str:
    return next((refs[place + name] for place in _PLACES if place + name in refs), "")


def _folder(address: GitAddress, length: int) -> str:
    return "/".join(address.trail[length:]) or DEFAULT_FOLDER


def _unknown(address: GitAddress, name: str, refs: Refs) -> UsageError:
    if address.trail:
        name = "/".join(address.trail)
    known = {found[1] for ref in refs if (found := _NAMED.fullmatch(ref))}
    near = [printable(ref) for ref in difflib.get_close_matches(name, sorted(known), n=_NEAR)]
    if _SHORT.fullmatch(address.trail[0] if address.trail else name):
        hint = "a server finds a commit only by its full id: git rev-parse prints it"
    elif near:
        hint = f"did you mean {' or '.join(near)}?"
    elif known:
        shown = [printable(ref) for ref in sorted(known)[:_NEAR]]
        hint = f"it has {len(known)} branches and tags, such as {', '.join(shown)}"
    else:
        hint = FORMS
    what = "branch or tag that begins" if address.trail else "branch, tag or commit"
    return UsageError("unknown_source_ref", f"{address.shown} has no {what} {printable(name)!r}", hint)
