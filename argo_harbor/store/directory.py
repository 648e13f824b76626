"""The embedded store: a directory on this machine."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from argo_harbor.errors import PlatformError
from argo_harbor.store.base import Entry, KeyNotFound

_TEMPORARY = ".tmp-"


class DirectoryStore:
    """Objects are files below `root`; a write goes to a temporary file that is synced and renamed."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def name(self) -> str:
        return str(self.root)

    def path(self, key: str) -> Path:
        """The file of a key. Raises ValueError for a key that leaves the root."""
        parts = key.split("/")
        if key.startswith("/") or any(part in ("", ".", "..") or "\0" in part for part in parts):
            raise ValueError(f"no key of a store: {key!r}")
        return self.root.joinpath(*parts)

    def put(self, key: str, data: bytes) -> None:
        self._write(key, lambda out: out.write(data))

    def put_file(self, key: str, path: Path) -> None:
        with path.open("rb") as source:
            self._write(key, lambda out: shutil.copyfileobj(source, out, 1 << 20))

    def _write(self, key: str, fill: Callable[[BinaryIO], object]) -> None:
        target = self.path(key)
        temporary: Path | None = None
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=_TEMPORARY, dir=target.parent)
            temporary = Path(name)
            with os.fdopen(handle, "wb") as out:
                fill(out)
                out.flush()
                os.fsync(out.fileno())
            temporary.chmod(0o644)
            temporary.replace(target)
        except OSError as error:
            if temporary is not None:
                temporary.unlink(missing_ok=True)
            raise PlatformError(
                "store_write_failed",
                f"cannot write {key} to {self.root}: {error.strerror or error}",
                "free some space or name another folder with --store",
            ) from error

    def get(self, key: str) -> bytes:
        try:
            return self.path(key).read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            raise KeyNotFound(key) from error

    def get_file(self, key: str, path: Path) -> None:
        try:
            shutil.copyfile(self.path(key), path)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            raise KeyNotFound(key) from error

    def open(self, key: str) -> BinaryIO:
        try:
            return self.path(key).open("rb")
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            raise KeyNotFound(key) from error

    def copy(self, source: str, target: str) -> None:
        """Hard links where the file system can: objects are replaced as a whole, never written in place."""
        origin = self.path(source)
        if not origin.is_file():
            raise KeyNotFound(source)
        destination = self.path(target)
        temporary = destination.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}")
        try:
            destination.parent.mkdir(parents=True, exist_ok=True)
            os.link(origin, temporary)
        except OSError:
            # No hard links here, or too many of this file: then the bytes move.
            self.put_file(target, origin)
            return
        temporary.replace(destination)
        # Renaming one link of a file onto another does nothing and leaves the first.
        temporary.unlink(missing_ok=True)

    def exists(self, key: str) -> bool:
        return self.path(key).is_file()

    def list(self, prefix: str) -> Iterator[Entry]:
        """Walks only the folder that the prefix names; temporary files of unfinished writes are left out."""
        folder, _, _ = prefix.rpartition("/")
        base = self.path(folder) if folder else self.root
        above = len(os.path.join(self.root, ""))
        for path in sorted(self._files(base), key=os.fsencode):
            key = path[above:]
            if os.path.basename(path).startswith(_TEMPORARY) or not key.startswith(prefix):
                continue
            try:
                found = os.stat(path)
            except FileNotFoundError:
                continue
            yield Entry(key, found.st_size, found.st_mtime)

    @staticmethod
    def _files(base: Path) -> Iterator[str]:
        for folder, _, names in os.walk(base):
            for name in names:
                yield os.path.join(folder, name)

    def delete(self, key: str) -> None:
        try:
            self.path(key).unlink(missing_ok=True)
        except OSError as error:
            raise PlatformError(
                "store_write_failed",
                f"cannot remove {key} from {self.root}: {error.strerror or error}",
                "check who may write to the store's folder",
            ) from error
