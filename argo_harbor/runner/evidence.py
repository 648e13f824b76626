"""Uploads what a trial left: logs, rewards, artifacts, Harbor's own files.

Only regular files, and none of the secrets that the run was granted.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote_from_bytes

from argo_harbor.store.base import Store

BLOT = b"***"
MAX_PART = 200
"""Bytes of one part of a stored path; a longer name is cut, so that every store takes it."""
_PLAIN = " !#$&'()+,-.:;=@[]^_{}~"


def upload(store: Store, folder: Path, prefix: str, secrets: Sequence[str] = ()) -> tuple[str, ...]:
    """Put every regular file of `folder` under the key `prefix`, with the secrets' values blotted out.

    Returns the paths below the prefix, sorted. Names that are no text are percent-encoded.

    Raises: PlatformError `store_write_failed`.
    """
    stored: set[str] = set()
    for path in _files(folder):
        name = "/".join(_part(part) for part in path.relative_to(folder).parts)
        while name in stored:
            name += "~"
        stored.add(name)
        _put(store, path, prefix + name, secrets)
    return tuple(sorted(stored))


def upload_file(store: Store, path: Path, prefix: str, secrets: Sequence[str] = ()) -> tuple[str, ...]:
    """The same for one file, stored under its own name."""
    _put(store, path, prefix + path.name, secrets)
    return (path.name,)


def pack(folder: Path, archive: Path, secrets: Sequence[str] = ()) -> None:
    """Write the files and folders of `folder` to a new archive, the secrets' values blotted out."""
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        for path in sorted(folder.rglob("*")):
            info = tar.gettarinfo(path, arcname=str(path.relative_to(folder)))
            if info.isdir():
                tar.addfile(info)
            elif info.isreg():
                data = _blotted(path, secrets)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


def unpack(archive: Path, folder: Path) -> None:
    """Write what `pack` packed into the new folder `folder`; nothing can leave it.

    Raises: tarfile.TarError, OSError.
    """
    folder.mkdir(parents=True)
    with tarfile.open(archive, "r:gz") as tar:
        tar.extractall(folder, filter="data")


def _put(store: Store, path: Path, key: str, secrets: Sequence[str]) -> None:
    if secrets:
        store.put(key, _blotted(path, secrets))
    else:
        store.put_file(key, path)


def _blotted(path: Path, secrets: Sequence[str]) -> bytes:
    data = path.read_bytes()
    for secret in secrets:
        data = data.replace(secret.encode(), BLOT)
    return data


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent, name)
            if stat.S_ISREG(path.lstat().st_mode):
                yield path


def _part(name: str) -> str:
    if name in (".", ".."):
        return quote_from_bytes(os.fsencode(name), safe="").replace(".", "%2E")
    encoded = name if name.isprintable() and "\\" not in name else _escape(name)
    raw = encoded.encode()
    return encoded if len(raw) <= MAX_PART else raw[:MAX_PART].decode(errors="ignore")


def _escape(name: str) -> str:
    return quote_from_bytes(os.fsencode(name), safe=_PLAIN)
