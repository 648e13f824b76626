"""Unpacking of task archives, which trusts nothing but the digest that was asked for."""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from argo_harbor.errors import Finding, Refused
from argo_harbor.sources.bounds import (
    MAX_NAME_BYTES,
    MAX_PATH_BYTES,
    MAX_TOTAL_BYTES,
    Bounds,
    FileTooMuch,
    TooMuch,
)
from argo_harbor.sources.digest import digest_of
from argo_harbor.sources.member import printable
from argo_harbor.sources.tar import BrokenTar, Entry, Read, read_entries
from argo_harbor.sources.tree import MAX_FILES

_CHUNK = 1 << 18
_MAX_HEADER_BYTES = 1 << 17
"""Bytes that one entry may take besides its content."""


def unpack(archive: Path, dest: Path, *, digest: str, foreign: bool = False) -> None:
    """Unpack an archive into the new folder `dest` and check that its content digest is `digest`.

    `foreign` says that somebody else's program wrote it; see `tar`.

    `dest` appears whole or not at all; nothing is written outside of it. Raises Refused
    (`source_unreadable`) for anything but a well-formed archive with that digest, OSError when `dest` exists
    or the disk does not take it.
    """
    if os.path.lexists(dest):
        raise FileExistsError(f"{dest} exists")
    dest.parent.mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(prefix=f".{dest.name[:100]}-", dir=dest.parent)
    try:
        try:
            with gzip.open(archive, "rb") as packed:
                found = _Unpacking(folder).run(read_entries(_limited(packed), foreign=foreign))
        except (BrokenTar, EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise Refused.of([_unreadable(f"the archive is broken: it {error}", archive)]) from error
        except OSError as error:
            if error.errno not in (errno.ENAMETOOLONG, errno.EILSEQ):
                raise
            message = f"the archive has a name that {printable(str(dest.parent))} cannot hold"
            raise Refused.of([_unreadable(message, archive)]) from error
        if found != digest:
            message = f"the archive holds content {found[:12]}, not {digest[:12]}"
            raise Refused.of([_unreadable(message, archive)])
        os.chmod(folder, 0o755)
        os.rename(folder, dest)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


class _Unpacking:
    """Writes entries below a folder that is its own, links last, so that no write can go through a link."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._files: dict[str, str] = {}
        self._links: dict[str, str] = {}
        self._bounds = Bounds()

    def run(self, entries: Iterator[Entry]) -> str:
        """Content digest of what was written. Raises BrokenTar, OSError."""
        for entry in entries:
            self._check(entry)
            if entry.is_link:
                self._links[entry.path] = self._resolve(entry)
                for _ in entry.chunks:
                    pass
            else:
                self._write(entry)
        hashes = dict(self._files)
        for path, target in self._links.items():
            if target not in self._files:
                raise BrokenTar(f"has the link {printable(path)!r} to something that is no file in it")
            self._make_parent(path)
            try:
                os.symlink(os.path.relpath(target, os.path.dirname(path) or "."), f"{self._folder}/{path}")
            except FileExistsError as error:
                raise BrokenTar(f"has {printable(path)!r} as link and folder") from error
            hashes[path] = self._files[target]
        return digest_of(sorted(hashes.items()))

    def _check(self, entry: Entry) -> None:
        parts = entry.path.split("/")
        if (
            "\0" in entry.path
            or any(part in {"", ".", ".."} or len(part.encode()) > MAX_NAME_BYTES for part in parts)
            or len(entry.path.encode()) > MAX_PATH_BYTES
        ):
            raise BrokenTar(f"has an entry with the path {printable(entry.path)[:100]!r}")
        if entry.path in self._files or entry.path in self._links:
            raise BrokenTar(f"has two entries {printable(entry.path)!r}")
        try:
            self._bounds.take(entry.path, entry.size)
        except FileTooMuch as error:
            raise BrokenTar(f"has the entry {printable(entry.path)[:100]!r}, which {error}") from error
        except TooMuch as error:
            raise BrokenTar(str(error)) from error

    def _write(self, entry: Entry) -> None:
        self._make_parent(entry.path)
        digest = hashlib.sha256()
        try:
            handle = os.open(
                f"{self._folder}/{entry.path}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600
            )
        except (IsADirectoryError, FileExistsError) as error:
            raise BrokenTar(f"has {printable(entry.path)!r} as file and folder") from error
        with open(handle, "wb") as file:
            for chunk in entry.chunks:
                digest.update(chunk)
                file.write(chunk)
            # Readable by the owner whatever the archive says, or the task could not be used.
            os.fchmod(handle, entry.mode | 0o400)
        self._files[entry.path] = digest.hexdigest()

    def _make_parent(self, path: str) -> None:
        try:
            os.makedirs(os.path.dirname(f"{self._folder}/{path}"), exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise BrokenTar(f"has a file in the place of a folder of {printable(path)!r}") from error

    def _resolve(self, entry: Entry) -> str:
        """The path in the archive that a link names."""
        if entry.target.startswith("/") or not entry.target or "\0" in entry.target:
            raise BrokenTar(f"has the link {printable(entry.path)!r}, which is not relative")
        folder: list[str] = entry.path.split("/")[:-1]
        for part in entry.target.split("/"):
            if part == "..":
                if not folder:
                    raise BrokenTar(f"has the link {printable(entry.path)!r}, which leads out of it")
                folder.pop()
            elif part not in {"", "."}:
                folder.append(part)
        return "/".join(folder)


def _limited(packed: gzip.GzipFile) -> Read:
    """Reads from the packed stream, bounded so that a small archive cannot swell without end."""
    budget = MAX_TOTAL_BYTES + MAX_FILES * _MAX_HEADER_BYTES

    def read(size: int) -> bytes:
        nonlocal budget
        parts = []
        while size and (part := packed.read(min(size, _CHUNK))):
            parts.append(part)
            size -= len(part)
            budget -= len(part)
            if budget < 0:
                raise BrokenTar("is larger than a task may be")
        return b"".join(parts)

    return read


def _unreadable(message: str, archive: Path) -> Finding:
    hint = "argo-harbor tasksets create --verify replaces it, given the source of the taskset"
    return Finding("source_unreadable", message, hint, file=printable(str(archive)))
