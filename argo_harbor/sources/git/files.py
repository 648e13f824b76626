"""Writes files of a commit to a folder exactly as they were committed, without git's help.

A checkout would run filters, rewrite line ends and expand keywords as attributes of the repository say, and
then the content would not be what the digests of other sources say.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import BinaryIO

from argo_harbor.errors import Finding, PlatformError, Refused
from argo_harbor.sources.bounds import MAX_FILE_BYTES, MAX_TOTAL_BYTES
from argo_harbor.sources.git.tree import Entry
from argo_harbor.sources.member import printable

_MAX_LINK_BYTES = 4095
_MAX_POINTER_BYTES = 1024
"""Git LFS itself takes nothing longer for a pointer."""
_POINTERS = (b"version https://git-lfs.github.com/spec/", b"version https://hawser.github.com/spec/")
_CHUNK = 1 << 20


def check_sizes(entries: Iterable[Entry], sizes: Mapping[str, int]) -> None:
    """Raises Refused when a file, or what one folder of the suite holds, is larger than a task may be."""
    findings = []
    totals: dict[str, int] = {}
    for entry in entries:
        size = sizes[entry.id]
        path = os.fsdecode(entry.path)
        top = path.partition("/")[0]
        totals[top] = totals.get(top, 0) + size
        if size > (_MAX_LINK_BYTES if entry.is_link else MAX_FILE_BYTES):
            findings.append(_too_large(path, size))
    findings += [_too_large(top, total) for top, total in totals.items() if total > MAX_TOTAL_BYTES]
    if findings:
        raise Refused.of(findings, "file")


def write_files(entries: Iterable[Entry], contents: BinaryIO, folder: str) -> list[str]:
    """Write entries below `folder`, which is ours, from the frames of `git cat-file --batch`, in that order.

    Links come last, so that nothing is written through one. Returns the paths of Git LFS pointers.
    Raises Refused for a link that names nothing, PlatformError for a stream that ends early, OSError when the
    disk does not take it.
    """
    pointers = []
    links = []
    for entry in entries:
        size = _read_header(contents, entry)
        place = os.path.join(os.fsencode(folder), entry.path)
        if entry.is_link:
            target = _read(contents, size)
            if not target or b"\0" in target:
                raise Refused.of([_no_target(os.fsdecode(entry.path))])
            links.append((place, target))
        else:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            if _write(contents, size, place, program=entry.is_program):
                pointers.append(os.fsdecode(entry.path))
        _read(contents, 1)
    for place, target in links:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        os.symlink(target, place)
    return pointers


def check_links(folder: str) -> None:
    """Refuse links beside the tasks that lead out of `folder`: what they name is this machine's.

    Links inside of a task are the reader's business.
    """
    findings = []
    real = os.path.realpath(folder)
    with os.scandir(real) as found:
        for name in sorted(item.name for item in found if item.is_symlink()):
            target = os.path.realpath(f"{real}/{name}")
            if not target.startswith(f"{real}/"):
                hint = "put the files themselves in its place"
                message = "links out of the suite"
                findings.append(Finding("invalid_task_config", message, hint, file=printable(name)))
    if findings:
        raise Refused.of(findings)


def _write(contents: BinaryIO, size: int, place: bytes, *, program: bool) -> bool:
    """True for a Git LFS pointer."""
    handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(handle, "wb") as file:
        left = size
        while left:
            chunk = _read(contents, min(left, _CHUNK))
            file.write(chunk)
            left -= len(chunk)
        os.fchmod(handle, 0o755 if program else 0o644)
    return 0 < size <= _MAX_POINTER_BYTES and chunk.startswith(_POINTERS)


def _read_header(contents: BinaryIO, entry: Entry) -> int:
    parts = contents.readline(200).split()
    if len(parts) != 3 or parts[0] != entry.id.encode("ascii") or parts[1] != b"blob":
        raise _broken()
    return int(parts[2])


def _read(contents: BinaryIO, size: int) -> bytes:
    data = contents.read(size)
    if len(data) < size:
        raise _broken()
    return data


def _broken() -> PlatformError:
    hint = "try again; if it stays so, clone the repository yourself and use --harbor-dir"
    return PlatformError("source_unreachable", "a file of the repository cannot be read", hint)


def _no_target(path: str) -> Finding:
    hint = "the repository has to be repaired"
    return Finding("source_unreadable", "is a link without a target", hint, file=printable(path))


def _too_large(path: str, size: int) -> Finding:
    hint = "bring large data in a prebuilt image"
    return Finding("invalid_task_config", f"has {size} bytes, more than it may", hint, file=printable(path))
