"""Files into a sandbox and out of it by execd: folders as one archive, packed and unpacked by its own tar.

An image without tar gets and gives files one by one. Whatever comes out goes through the same strict reader,
which makes regular files and folders only.
"""

from __future__ import annotations

import asyncio
import secrets
import stat
import tarfile
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import BinaryIO, cast

from argo_harbor.sandbox import execd_script, transfer
from argo_harbor.sandbox.archive import ArchiveCutShort
from argo_harbor.sandbox.base import Downloaded, ExecResult, TransferFailed, TransferRefused
from argo_harbor.sandbox.execd_client import ExecdClient, ExecdRefused, FileInfo, TooLarge

MAX_ARCHIVE = transfer.MAX_BYTES + (transfer.MAX_ENTRIES << 10)
"""Bytes of an archive: the most content and a kilobyte of headers for each entry."""

type Script = Callable[[str], Awaitable[ExecResult]]


class Files:
    """Moves files for one sandbox."""

    def __init__(self, client: ExecdClient, script: Script, *, scratch: str) -> None:
        self._client = client
        self._script = script
        self._scratch = scratch
        self.tar = "none"
        """Which tar the image has: `none`, `tar` or `gnu`."""

    async def upload(self, source: Path, target: str) -> None:
        """See `Sandbox.upload`. Raises: NoAnswer besides."""
        try:
            if not source.is_dir():
                await self._upload_file(source, target)
            elif self.tar == "none":
                await self._upload_singly(source, target)
            else:
                await self._upload_archive(source, target)
        except ExecdRefused as error:
            raise TransferFailed(f"{target}: {error}") from error
        except OSError as error:
            raise TransferFailed(f"{source}: {error.strerror or error}") from error

    async def download_folder(self, source: str, target: Path) -> Downloaded:
        """See `Sandbox.download_folder`. Raises: NoAnswer besides."""
        with _temporary() as archive:
            if self.tar == "none":
                await self._gather(source, archive)
            else:
                await self._fetch(source, ".", archive)
            return await _receive(archive, lambda pipe: transfer.receive_folder(pipe, target))

    async def download_file(self, source: str, target: Path) -> Downloaded:
        """See `Sandbox.download_file`. Raises: NoAnswer besides."""
        folder, _, name = source.rstrip("/").rpartition("/")
        with _temporary() as archive:
            if self.tar == "none":
                await self._gather_one(source, name, archive)
            else:
                await self._fetch(folder or "/", f"./{name}", archive)
            return await _receive(archive, lambda pipe: transfer.receive_file(pipe, name=name, target=target))

    async def _upload_file(self, source: Path, target: str) -> None:
        with source.open("rb") as content:
            found = source.stat()
            await self._put(content, found.st_size, target, stat.S_IMODE(found.st_mode))

    async def _put(self, content: BinaryIO, size: int, target: str, mode: int) -> None:
        await self._client.upload(target, content, size, mode)
        # Some releases answered well and had lost the file.
        there = await self._client.info(target)
        if there is None or there.size != size:
            raise TransferFailed(f"{target}: {size} bytes were sent and {there.size if there else 0} arrived")

    async def _upload_archive(self, source: Path, target: str) -> None:
        inside = self._new_archive()
        with _temporary() as archive:
            await asyncio.to_thread(transfer.pack, source, archive)
            size = archive.tell()
            archive.seek(0)
            await self._put(archive, size, inside, 0o600)
        done = await self._script(execd_script.unpack(inside, target))
        if done.return_code != 0:
            raise TransferFailed(f"{target}: {done.stderr.strip() or f'status {done.return_code}'}")

    async def _upload_singly(self, source: Path, target: str) -> None:
        folders = {target: stat.S_IMODE(source.stat().st_mode)}
        files: list[tuple[Path, str]] = []
        links: list[str] = []
        for path in sorted(source.rglob("*")):
            inner = f"{target.rstrip('/')}/{path.relative_to(source).as_posix()}"
            if path.is_symlink():
                links.append(execd_script.link(str(path.readlink()), inner))
            elif path.is_dir():
                folders[inner] = stat.S_IMODE(path.stat().st_mode)
            elif path.is_file():
                files.append((path, inner))
        await self._client.make_folders(folders)
        for path, inner in files:
            await self._upload_file(path, inner)
        if links:
            done = await self._script("set -e\n" + "".join(links))
            if done.return_code != 0:
                raise TransferFailed(f"{target}: {done.stderr.strip()}")

    async def _fetch(self, folder: str, member: str, archive: BinaryIO) -> None:
        """Have the sandbox's tar pack something, and get the archive."""
        inside = self._new_archive()
        done = await self._script(execd_script.pack(folder, member, inside, gnu=self.tar == "gnu"))
        if done.return_code == execd_script.NO_FOLDER:
            raise TransferFailed(f"there is no {folder if member == '.' else member[2:]}")
        # Status 1 means that a file changed while it was read.
        if done.return_code not in (0, 1):
            raise TransferFailed(f"{folder}: {done.stderr.strip() or f'status {done.return_code}'}")
        try:
            await self._client.download(inside, archive, MAX_ARCHIVE)
            await self._client.remove(inside)
        except TooLarge as error:
            raise TransferRefused(f"the sandbox sent more than {MAX_ARCHIVE} bytes") from error
        except ExecdRefused as error:
            raise TransferFailed(f"{folder}: {error}") from error

    async def _gather(self, folder: str, archive: BinaryIO) -> None:
        """The same file by file, for an image without tar."""
        try:
            listed = await self._client.search(folder)
        except ExecdRefused as error:
            raise TransferFailed(f"there is no {folder}: {error}") from error
        prefix = f"{folder.rstrip('/')}/"
        with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as out:
            for entry in listed:
                if entry.path.startswith(prefix):
                    await self._add(out, entry, entry.path.removeprefix(prefix))

    async def _gather_one(self, path: str, name: str, archive: BinaryIO) -> None:
        entry = await self._client.info(path)
        if entry is None:
            raise TransferFailed(f"there is no {path}")
        with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as out:
            await self._add(out, entry._replace(path=path), name)

    async def _add(self, out: tarfile.TarFile, entry: FileInfo, name: str) -> None:
        info = tarfile.TarInfo(name)
        info.mode = entry.mode & 0o777
        if entry.kind in ("directory", "dir"):
            info.type = tarfile.DIRTYPE
        elif entry.kind not in ("file", ""):
            info.type = tarfile.SYMTYPE
        else:
            with _temporary() as content:
                try:
                    info.size = await self._client.download(entry.path, content, transfer.MAX_BYTES)
                except TooLarge as error:
                    raise TransferRefused(str(error)) from error
                except ExecdRefused as error:
                    raise TransferFailed(f"{entry.path}: {error}") from error
                content.seek(0)
                out.addfile(info, content)
            return
        out.addfile(info)

    def _new_archive(self) -> str:
        return f"{self._scratch}/{secrets.token_hex(8)}.tar"


def _temporary() -> BinaryIO:
    """Most archives are small; a large one goes to the runner's own disk."""
    return cast(BinaryIO, tempfile.SpooledTemporaryFile(max_size=8 << 20))


async def _receive(archive: BinaryIO, receive: Callable[[BinaryIO], Downloaded]) -> Downloaded:
    archive.seek(0)
    try:
        return await asyncio.to_thread(receive, archive)
    except ArchiveCutShort as error:
        raise TransferFailed("the sandbox's archive is cut short") from error
