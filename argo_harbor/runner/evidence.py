"""Uploads what a trial left: logs, rewards, artifacts, Harbor's own files.

Only regular files, and none of the secrets that the run was granted.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import tarfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote_from_bytes

from argo_harbor.store.base import Store

BLOT = b"***"
PARALLEL = 8
"""Uploads at once: a trial's files are small and many."""
MAX_PART = 200
"""Bytes of one part of a stored path; a longer name is cut, so that every store takes it."""
MAX_PATH = 600
"""Bytes of a whole path: an S3 key has at most 1,024, and a run's folder comes before it."""
_ESCAPED = re.compile(r"%[0-9A-F]{2}")
_PLAIN = " !#$&'()+,-.:;=@[]^_{}~"


class Uploads:
    """Puts what a trial left under the key of its try, several files at once, each version of a file once."""

    def __init__(self, store: Store, prefix: str, secrets: Sequence[str] = ()) -> None:
        """`prefix` ends in a slash; the secrets' values are blotted out."""
        self._store = store
        self._prefix = prefix
        self._secrets = tuple(secrets)
        self._names: dict[Path, str] = {}
        self._versions: dict[Path, tuple[int, int]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Paths below the prefix of what is stored, sorted. Names that are no text are percent-encoded."""
        return tuple(sorted(self._names[path] for path in self._versions))

    def add(self, folder: Path, under: str = "") -> None:
        """Put every regular file of a folder below `under`, except those that are there as they are.

        Raises: PlatformError `store_write_failed`.
        """
        self._put([(path, f"{under}{_joined(path.relative_to(folder))}") for path in _files(folder)])

    def add_file(self, path: Path) -> None:
        """The same for one file, under its own name."""
        self._put([(path, path.name)])

    def _put(self, files: list[tuple[Path, str]]) -> None:
        pending: list[tuple[Path, tuple[int, int]]] = []
        taken = set(self._names.values())
        for path, wanted in files:
            found = path.stat()
            version = (found.st_size, found.st_mtime_ns)
            if self._versions.get(path) == version:
                continue
            name = self._names.get(path, wanted)
            while path not in self._names and name in taken:
                name += "~"
            self._names[path] = name
            taken.add(name)
            pending.append((path, version))
        with ThreadPoolExecutor(PARALLEL) as pool:
            for path, version in zip(
                [path for path, _ in pending],
                pool.map(self._put_one, pending),
                strict=True,
            ):
                self._versions[path] = version

    def _put_one(self, pending: tuple[Path, tuple[int, int]]) -> tuple[int, int]:
        path, version = pending
        key = self._prefix + self._names[path]
        if self._secrets:
            self._store.put(key, blot(path.read_bytes(), self._secrets))
        else:
            self._store.put_file(key, path)
        return version


def blot(data: bytes, secrets: Sequence[str]) -> bytes:
    """The data with the secrets' values blotted out."""
    for secret in secrets:
        data = data.replace(secret.encode(), BLOT)
    return data


def pack(folder: Path, archive: Path, secrets: Sequence[str] = ()) -> None:
    """Write the files and folders of `folder` to a new archive, the secrets' values blotted out."""
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        for path in sorted(folder.rglob("*")):
            info = tar.gettarinfo(path, arcname=str(path.relative_to(folder)))
            if info.isdir():
                tar.addfile(info)
            elif info.isreg():
                data = blot(path.read_bytes(), secrets)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


def unpack(archive: Path, folder: Path) -> None:
    """Write what `pack` packed into the new folder `folder`; nothing can leave it.

    Raises: tarfile.TarError, OSError.
    """
    folder.mkdir(parents=True)
    with tarfile.open(archive, "r:gz") as tar:
        tar.extractall(folder, filter="data")


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent, name)
            if stat.S_ISREG(path.lstat().st_mode):
                yield path


def _joined(path: Path) -> str:
    return _cut("/".join(_part(part) for part in path.parts), MAX_PATH)


def _part(name: str) -> str:
    """Of two names never the same: else a file could come to lie where another path needs a folder."""
    if name in (".", ".."):
        return quote_from_bytes(os.fsencode(name), safe="").replace(".", "%2E")
    plain = name.isprintable() and "\\" not in name and not _ESCAPED.search(name)
    return _cut(name if plain else quote_from_bytes(os.fsencode(name), safe=_PLAIN), MAX_PART)


def _cut(text: str, size: int) -> str:
    """At most about `size` bytes, the last of them from the digest of what was cut."""
    raw = text.encode()
    if len(raw) <= size:
        return text
    return f"{raw[: size - 17].decode(errors='ignore')}~{hashlib.sha256(raw).hexdigest()[:16]}"
