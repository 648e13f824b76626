"""Files into a sandbox and out of it.

In: a tar stream of the caller's files, unpacked by tar inside. Out: a tar stream of unknown origin, of
which only regular files and folders are created, each below an already opened folder, so that neither a
name nor a link can lead anywhere else. Used by `bubblewrap.py`, and by `build.py` for what it copies.
"""

from __future__ import annotations

import os
import stat
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Self, cast

from argo_harbor.sandbox.archive import ArchiveReader, Member, Source
from argo_harbor.sandbox.base import Downloaded, Link, TransferFailed, TransferRefused
from argo_harbor.sandbox.process import wait_readable

MAX_BYTES = 4 << 30
"""Of one download. Results of tasks are small; this only keeps one trial from filling the disk."""
MAX_ENTRIES = 200_000
MAX_LISTED = 10_000
"""Links and special files that are listed by name."""
_TRAILER = 1 << 20
"""Bytes read after the end of an archive, where tar only writes padding."""
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class PipeReader:
    """Whole reads from a pipe whose writer may stall: for a thread, with a deadline, and it can be
    abandoned."""

    def __init__(self, handle: int, seconds: float) -> None:
        self._handle = handle
        self._deadline = time.monotonic() + seconds
        self._abandoned = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    def abandon(self) -> None:
        """Make the thread that reads give up within a quarter of a second."""
        self._abandoned.set()

    def read(self, size: int) -> bytes:
        """Exactly `size` bytes, fewer only at the end. Raises: TransferFailed when it takes too long."""
        pieces = bytearray()
        while len(pieces) < size:
            while not wait_readable(self._handle, 0.25):
                if self._abandoned.is_set() or time.monotonic() > self._deadline:
                    raise TransferFailed("the sandbox stopped sending")
            piece = os.read(self._handle, size - len(pieces))
            if not piece:
                break
            pieces += piece
        return bytes(pieces)


def temporary_archive() -> BinaryIO:
    """A file without a name for an archive on its way in."""
    return cast(BinaryIO, tempfile.TemporaryFile())


def pack(source: Path, archive: BinaryIO, *, name: str = "") -> None:
    """Write a file (as `name`), or a folder's content, as a tar archive; links stay links, modes are kept.

    Raises: TransferFailed when something cannot be read.
    """
    try:
        with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as out:
            if not source.is_dir():
                add_to_archive(out, source, name)
                return
            for entry in sorted(source.iterdir()):
                add_to_archive(out, entry, entry.name)
    except OSError as error:
        raise TransferFailed(f"{source}: {error.strerror}") from error


def add_to_archive(
    out: tarfile.TarFile,
    source: Path,
    name: str,
    *,
    keep: Callable[[str, bool], bool] = lambda _name, _is_folder: True,
    mode: int = -1,
) -> None:
    """Add a path with all below it, owned by root; sockets and devices are left out.

    `keep` is asked for each name below `source`, and told whether it is a folder; a `mode` ≥ 0 replaces all
    modes.
    """
    pending = [(source, name)]
    while pending:
        path, inner = pending.pop()
        info = out.gettarinfo(path, inner)
        if info is None or not (info.isreg() or info.isdir() or info.issym() or info.islnk()):
            continue
        if info.islnk():
            # A second name of a file is stored as a file, so that the archive needs no order.
            info.type, info.linkname, info.size = tarfile.REGTYPE, "", path.stat().st_size
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        info.mode = mode if mode >= 0 else stat.S_IMODE(info.mode)
        if info.isreg():
            with path.open("rb") as content:
                out.addfile(info, content)
            continue
        out.addfile(info)
        if info.isdir():
            children = [(child, f"{inner}/{child.name}") for child in sorted(path.iterdir(), reverse=True)]
            pending += [
                pair for pair in children if keep(pair[1], pair[0].is_dir() and not pair[0].is_symlink())
            ]


def receive_folder(pipe: Source, target: Path) -> Downloaded:
    """Write what the sandbox sends into a folder, over what is there.

    Raises: TransferRefused, TransferFailed; OSError when the disk is full.
    """
    target.mkdir(parents=True, exist_ok=True)
    receiver = _Receiver(target)
    try:
        reader = ArchiveReader(pipe)
        for member in reader.members():
            receiver.take(member, member.parts, reader)
        _drain(pipe)
    finally:
        receiver.close()
    return receiver.report()


def receive_file(pipe: Source, *, name: str, target: Path) -> Downloaded:
    """Write the one regular file `name` that the sandbox sends to the path `target`.

    Raises: TransferFailed for a folder and for nothing, TransferRefused for any other name; OSError when
    the disk is full.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    receiver = _Receiver(target.parent)
    found = False
    try:
        reader = ArchiveReader(pipe)
        for member in reader.members():
            found = True
            if member.parts != (name,):
                raise TransferRefused(f"the sandbox sent {'/'.join(member.parts)!r} instead of {name!r}")
            if member.kind == "folder":
                raise TransferFailed(f"{name} is a folder")
            receiver.take(member, (target.name,), reader)
        _drain(pipe)
    finally:
        receiver.close()
    if not found:
        raise TransferFailed(f"there is no {name}")
    return receiver.report()


def _drain(pipe: Source) -> None:
    if len(pipe.read(_TRAILER)) == _TRAILER:
        raise TransferRefused("the sandbox sends on after the end of the archive")


class _Receiver:
    """Creates members below one opened folder and counts what they cost."""

    def __init__(self, target: Path) -> None:
        self._root = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._entries = 0
        self._files = 0
        self._bytes = 0
        self._links: list[Link] = []
        self._skipped: list[str] = []

    def close(self) -> None:
        os.close(self._root)

    def report(self) -> Downloaded:
        return Downloaded(self._files, self._bytes, tuple(self._links), tuple(self._skipped))

    def take(self, member: Member, parts: tuple[str, ...], reader: ArchiveReader) -> None:
        self._entries += 1
        if self._entries > MAX_ENTRIES:
            raise TransferRefused(f"the sandbox sent more than {MAX_ENTRIES} entries")
        if self._bytes + member.size > MAX_BYTES:
            raise TransferRefused(f"the sandbox sent more than {MAX_BYTES} bytes")
        path = "/".join(parts)
        if member.kind in ("link", "special"):
            if len(self._links) + len(self._skipped) >= MAX_LISTED:
                raise TransferRefused(f"the sandbox sent more than {MAX_LISTED} links and devices")
            if member.kind == "link":
                self._links.append(Link(path, member.target))
            else:
                self._skipped.append(path)
            return
        if member.kind == "folder":
            os.close(self._folder(parts))
            return
        if not parts:
            raise TransferRefused("the sandbox sent a file without a name")
        self._bytes += member.size
        self._files += 1
        parent = self._folder(parts[:-1])
        try:
            self._write(parent, parts[-1], member, reader)
        except IsADirectoryError:
            raise TransferRefused(f"{path} is a folder and a file") from None
        finally:
            os.close(parent)

    def _folder(self, parts: tuple[str, ...]) -> int:
        """Open the folder with this path, made when missing, through no link."""
        current = os.dup(self._root)
        try:
            for part in parts:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=current)
                inner = os.open(part, _FOLDER_FLAGS, dir_fd=current)
                os.close(current)
                current = inner
        except OSError as error:
            os.close(current)
            if isinstance(error, NotADirectoryError):
                raise TransferRefused(
                    f"{'/'.join(parts)} leads through something that is no folder"
                ) from error
            raise
        return current

    @staticmethod
    def _write(parent: int, name: str, member: Member, reader: ArchiveReader) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=parent)
        handle = os.open(name, _FILE_FLAGS, member.mode & 0o755 | 0o600, dir_fd=parent)
        with os.fdopen(handle, "wb") as out:
            for piece in reader.content():
                out.write(piece)
