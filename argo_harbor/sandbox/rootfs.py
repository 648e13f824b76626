"""The files of an image, written to a folder that becomes the lowest layer of its sandboxes.

The archive comes from a builder, its content from a stranger: nothing is created outside the folder, no
folder is entered through a link, and what could mean more to the kernel than to the image is left out
(devices, extended attributes, set-user-id bits). Every file belongs to the id of sandboxes, the only one that
exists inside.
"""

from __future__ import annotations

import os
import posixpath
import stat
from contextlib import suppress
from pathlib import Path

from argo_harbor.sandbox.archive import ArchiveReader, Member
from argo_harbor.sandbox.base import TransferRefused
from argo_harbor.sandbox.scratch import sandbox_id
from argo_harbor.sandbox.transfer import PipeReader

MAX_BYTES = 64 << 30
MAX_ENTRIES = 4_000_000
"""Several times the largest images of known suites; this only keeps one image from filling the disk."""
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MOUNTS = ("dev", "proc")
"""Where sandboxes mount: a link there would lead a mount elsewhere."""
_NEEDED = {
    "sys": 0o755, "etc": 0o755, "root": 0o700, "run": 0o755, "tmp": 0o1777, "var": 0o755, "var/tmp": 0o1777,
    "logs": 0o777, "logs/agent": 0o777, "logs/artifacts": 0o777, "logs/verifier": 0o777,
}  # fmt: skip
_HOSTS = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.1.1\tsandbox\n"
_ETC = {"hosts": _HOSTS, "hostname": "sandbox\n", "resolv.conf": None}
"""What a container engine writes for its own containers; a resolver comes with a network only."""


def receive_rootfs(pipe: PipeReader, target: Path, *, workdir: str = "/") -> None:
    """Write the archive of an image's files into the new folder `target`.

    The image's `workdir` is made when missing, as container engines do.

    Raises: TransferRefused, TransferFailed; OSError when the disk is full.
    """
    target.mkdir()
    target.chmod(0o755)
    writer = _Writer(target)
    try:
        reader = ArchiveReader(pipe)
        for member in reader.members():
            writer.take(member, reader)
        while pipe.read(1 << 16):
            # A builder pads its archive and must not die of a closed pipe.
            continue
        writer.complete(workdir)
    finally:
        writer.close()


class _Writer:
    """Creates members below one opened folder."""

    def __init__(self, target: Path) -> None:
        self._owner = sandbox_id()
        self._root = os.open(target, _FOLDER_FLAGS)
        self._own(self._root)
        self._entries = 0
        self._bytes = 0
        # Members of one folder follow one another.
        self._last: tuple[tuple[str, ...], int] = ((), os.dup(self._root))

    def close(self) -> None:
        os.close(self._last[1])
        os.close(self._root)

    def take(self, member: Member, reader: ArchiveReader) -> None:
        self._entries += 1
        self._bytes += member.size
        if self._entries > MAX_ENTRIES or self._bytes > MAX_BYTES:
            raise TransferRefused(f"the image has more than {MAX_ENTRIES} files or {MAX_BYTES} bytes")
        if member.kind == "special" or not member.parts:
            return
        try:
            self._create(member, reader)
        except (NotADirectoryError, IsADirectoryError, FileExistsError) as error:
            path = "/".join(member.parts)
            raise TransferRefused(f"{path} leads through a link, or is a folder and a file") from error

    def _create(self, member: Member, reader: ArchiveReader) -> None:
        name = member.parts[-1]
        if member.kind == "folder":
            os.fchmod(self._enter(member.parts), member.mode | 0o700)
            return
        parent = self._enter(member.parts[:-1])
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=parent)
        if member.kind == "file":
            self._write(parent, member, reader)
        elif member.hard:
            self._link(parent, member)
        else:
            os.symlink(member.target, name, dir_fd=parent)
            if self._owner is not None:
                os.chown(name, self._owner, self._owner, dir_fd=parent, follow_symlinks=False)

    def _write(self, parent: int, member: Member, reader: ArchiveReader) -> None:
        handle = os.open(member.parts[-1], _FILE_FLAGS, 0o600, dir_fd=parent)
        with os.fdopen(handle, "wb") as out:
            for piece in reader.content():
                out.write(piece)
            self._own(handle)
            os.fchmod(handle, member.mode | 0o400)

    def _link(self, parent: int, member: Member) -> None:
        """A second name of a file that came before."""
        path = "/".join(member.parts)
        inner = tuple(part for part in member.target.split("/") if part not in ("", "."))
        if not inner or ".." in inner:
            raise TransferRefused(f"{path} is a second name of {member.target!r}, which is no file")
        folder = os.dup(parent)
        try:
            source = self._enter(inner[:-1])
            os.link(inner[-1], member.parts[-1], src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
        except (FileNotFoundError, PermissionError) as error:
            raise TransferRefused(
                f"{path} is a second name of {member.target!r}, which is no file"
            ) from error
        finally:
            os.close(folder)

    def _enter(self, parts: tuple[str, ...]) -> int:
        """The opened folder with this path, made when missing, through no link; ours until the next call."""
        if parts == self._last[0]:
            return self._last[1]
        current = os.dup(self._root)
        try:
            for part in parts:
                made = False
                with suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=current)
                    made = True
                inner = os.open(part, _FOLDER_FLAGS, dir_fd=current)
                os.close(current)
                current = inner
                if made:
                    self._own(current)
        except OSError:
            os.close(current)
            raise
        os.close(self._last[1])
        self._last = (parts, current)
        return current

    def _own(self, handle: int) -> None:
        if self._owner is not None:
            os.fchown(handle, self._owner, self._owner)

    def complete(self, workdir: str) -> None:
        """Add what every container has."""
        for name in (*_MOUNTS, "etc"):
            self._make_real(name)
        for path, mode in _NEEDED.items():
            # Left as the image has it when that is a link or a file.
            with suppress(NotADirectoryError):
                self._make(path, mode)
        with suppress(NotADirectoryError):
            # Behind a link it is left to whoever enters it.
            self._enter(tuple(part for part in posixpath.normpath(f"/{workdir}").split("/") if part))
        etc = self._enter(("etc",))
        for name, text in _ETC.items():
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=etc)
            if text is not None:
                handle = os.open(name, _FILE_FLAGS, 0o644, dir_fd=etc)
                with os.fdopen(handle, "w") as out:
                    out.write(text)
                    self._own(handle)
                    os.fchmod(handle, 0o644)

    def _make_real(self, name: str) -> None:
        with suppress(FileNotFoundError):
            if not stat.S_ISDIR(os.stat(name, dir_fd=self._root, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=self._root)
        self._enter((name,))

    def _make(self, path: str, mode: int) -> None:
        parts = tuple(path.split("/"))
        parent = self._enter(parts[:-1])
        with suppress(FileNotFoundError):
            found = os.stat(parts[-1], dir_fd=parent, follow_symlinks=False)
            if not (stat.S_ISDIR(found.st_mode) and path in ("tmp", "var/tmp")):
                return
        os.fchmod(self._enter(parts), mode)
