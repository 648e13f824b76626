"""What of a folder in a commit makes up a suite, decided by the listing alone, before any content is fetched.

Trees come from strangers: a name may try to leave the folder, stand twice, or be no name at all.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple

from argo_harbor.errors import Finding, Refused
from argo_harbor.model.taskset import Warned
from argo_harbor.sources.bounds import MAX_DEPTH, MAX_NAME_BYTES, MAX_PATH_BYTES
from argo_harbor.sources.directory import MANIFEST, METRIC
from argo_harbor.sources.member import printable
from argo_harbor.sources.tree import CONFIG, FOLDERS, MAX_FILES, SINGLES

MAX_ENTRIES = 1_000_000
"""Of one suite: ten thousand tasks of a hundred files."""
_MAX_PATH_BYTES = MAX_PATH_BYTES - 1024
"""Leaves room for the folder that it is written to, within what Linux takes."""
_MAX_LIST_BYTES = 256 << 20
_MAX_FINDINGS = 100
_CHUNK = 1 << 18
_CONFIG = os.fsencode(CONFIG)
_LINK, _PROGRAM, _SUBMODULE = b"120000", b"100755", b"160000"


class Entry(NamedTuple):
    """One file, link or submodule of a tree."""

    path: bytes
    """Relative to the folder that was listed."""
    mode: bytes
    """Octal digits."""
    id: str
    """Of the blob, or of a submodule's commit."""

    @property
    def is_link(self) -> bool:
        return self.mode == _LINK

    @property
    def is_program(self) -> bool:
        return self.mode == _PROGRAM

    @property
    def is_submodule(self) -> bool:
        return self.mode == _SUBMODULE


@dataclass(slots=True)
class Choice:
    """The entries that reading the suite needs."""

    is_task: bool
    """True when the folder is one task and no suite."""
    files: list[Entry] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    """Folders beside the tasks that are none."""
    warnings: list[Warned] = field(default_factory=list)

    @property
    def has_tasks(self) -> bool:
        return self.is_task or any(entry.path.count(b"/") for entry in self.files)


def split_entries(listed: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    """(attributes, path) of each line that `git ls-tree -z` prints.

    Raises Refused for a list that is too long to be one of files.
    """
    total = 0
    rest = b""
    while chunk := listed.read(_CHUNK):
        total += len(chunk)
        *lines, rest = (rest + chunk).split(b"\0")
        if total > _MAX_LIST_BYTES or len(rest) > _CHUNK:
            raise Refused.of([_malformed("", "has more or longer names than any suite")])
        for line in lines:
            attributes, _, path = line.partition(b"\t")
            yield attributes, path


def parse_entries(listed: BinaryIO) -> list[Entry]:
    """The entries of `git ls-tree -r -z`.

    Raises Refused for more than MAX_ENTRIES and for names that no file can have, many at once.
    """
    entries: list[Entry] = []
    findings: list[Finding] = []
    for attributes, path in split_entries(listed):
        if len(entries) >= MAX_ENTRIES:
            raise Refused.of([_malformed("", f"holds more than {MAX_ENTRIES} files")])
        if len(findings) >= _MAX_FINDINGS:
            break
        mode, _, identity = attributes.split(b" ")[:3]
        entries.append(Entry(path, mode, identity.decode("ascii")))
        if problem := _problem(path):
            findings.append(_malformed(_shown(path)[:200], problem))
    findings += _clashes(entries)
    if findings:
        raise Refused.of(findings, "file")
    return entries


def choose(entries: Iterable[Entry]) -> Choice:
    """What to fetch of a folder with these entries. Raises Refused for tasks that cannot be had whole."""
    every = list(entries)
    choice = Choice(is_task=any(entry.path == _CONFIG for entry in every))
    folders = {entry.path.split(b"/")[0] for entry in every if entry.path.count(b"/")}
    tasks = {entry.path.split(b"/")[0] for entry in every if _is_config(entry.path)}
    # A link beside the tasks may stand for a task anywhere below the folder.
    whole = choice.is_task or any(entry.is_link and b"/" not in entry.path for entry in every)
    findings: list[Finding] = []
    for entry in every:
        top, slash, inner = entry.path.partition(b"/")
        if choice.is_task:
            inner, slash = entry.path, b"/"
        elif top.startswith(b"."):
            continue
        wanted = whole or top in tasks or (not slash and entry.path in _BESIDE)
        if entry.is_submodule:
            if not slash:
                choice.warnings.append(_left_out(entry))
            elif wanted and is_content(os.fsdecode(inner)):
                findings.append(_submodule(entry, task="" if choice.is_task else _shown(top)))
        elif wanted:
            choice.files.append(entry)
    findings += _too_many(choice)
    if findings:
        raise Refused.of(findings)
    if not choice.is_task:
        choice.others = sorted(os.fsdecode(top) for top in folders - tasks if not top.startswith(b"."))
    return choice


_BESIDE = frozenset({os.fsencode(MANIFEST), os.fsencode(METRIC)})


def is_content(path: str) -> bool:
    """Whether a path in a task can belong to its content."""
    top, slash, _ = path.partition("/")
    return top in FOLDERS or (not slash and top in SINGLES)


def _is_config(path: bytes) -> bool:
    return path.count(b"/") == 1 and path.endswith(b"/" + _CONFIG) and not path.startswith(b".")


def _problem(path: bytes) -> str:
    parts = path.split(b"/")
    if any(part in {b"", b".", b".."} for part in parts):
        return "is no path inside the folder"
    if any(part.lower() == b".git" for part in parts):
        return "is a repository inside the repository"
    if len(path) > _MAX_PATH_BYTES or any(len(part) > MAX_NAME_BYTES for part in parts):
        return "has a name that is too long for a file"
    if path.count(b"/") > MAX_DEPTH + 1:
        return f"lies more than {MAX_DEPTH} folders deep"
    return ""


def _clashes(entries: list[Entry]) -> list[Finding]:
    """Names that stand twice, or as file and as folder: only a forged tree has them."""
    counts = Counter(entry.path for entry in entries)
    findings = [_malformed(_shown(path), "stands there twice") for path, count in counts.items() if count > 1]
    both = {above for path in counts for above in _above(path) if above in counts}
    return findings + [_malformed(_shown(path), "is both file and folder") for path in sorted(both)]


def _above(path: bytes) -> Iterator[bytes]:
    """The folders that hold a path."""
    while b"/" in path:
        path = path.rpartition(b"/")[0]
        yield path


def _too_many(choice: Choice) -> list[Finding]:
    counts = Counter(b"" if choice.is_task else entry.path.split(b"/")[0] for entry in choice.files)
    hint = "pack data into one file or bring it in the image"
    return [
        Finding("invalid_task_config", f"has {count} files, more than {MAX_FILES}", hint, file=_shown(top))
        for top, count in counts.items()
        if count > MAX_FILES
    ]


def _left_out(entry: Entry) -> Warned:
    hint = "commit its files, or name its own repository"
    message = "is a submodule, whose files are not read, and is left out"
    return Warned("not_a_task", message, file=_shown(entry.path), hint=hint)


def _submodule(entry: Entry, *, task: str) -> Finding:
    message = "is a submodule, whose files are not read"
    hint = "commit its files to this repository, or clone with submodules and use --harbor-dir"
    return Finding("invalid_task_config", message, hint, task=task, file=_shown(entry.path))


def _malformed(file: str, message: str) -> Finding:
    return Finding("source_unreadable", message, "the repository has to be repaired", file=file)


def _shown(path: bytes) -> str:
    return printable(os.fsdecode(path))
