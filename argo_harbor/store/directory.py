"""The embedded store: a directory on this machine."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO

from argo_harbor.errors import PlatformError
from argo_harbor.store.base import Entry, KeyNotFound
from argo_harbor.store.keys import check_key

_UNFINISHED = ".unfinished"
"""Folder of writes that are under way. No object lies in it: names that others chose are objects' alone."""
_STALE_SECONDS = 24 * 3600
"""Since the last byte of a write after which whoever began it must have been killed."""


class DirectoryStore:
    """Objects are files below `root`; a write goes to a temporary file that is synced and renamed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._prefix = os.path.join(root, "")
        self._swept = False

    @property
    def name(self) -> str:
        return str(self.root)

    @property
    def parallel(self) -> int:
        return 1

    def path(self, key: str) -> Path:
        """The file of a key. Raises ValueError for a key that leaves the root."""
        return Path(self._file(key))

    def _file(self, key: str) -> str:
        return self._prefix + check_key(key)

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
            handle, name = tempfile.mkstemp(dir=self._unfinished())
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
            with open(self._file(key), "rb", buffering=0) as source:
                return source.readall()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            raise KeyNotFound(key) from error
        except OSError as error:
            raise self._unreadable(key, error) from error

    def get_file(self, key: str, path: Path) -> None:
        try:
            shutil.copyfile(self.path(key), path)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            raise KeyNotFound(key) from error
        except OSError as error:
            raise self._unreadable(key, error) from error

    def open(self, key: str) -> BinaryIO:
        try:
            return open(self._file(key), "rb")
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            raise KeyNotFound(key) from error
        except OSError as error:
            raise self._unreadable(key, error) from error

    def _unreadable(self, what: str, error: OSError) -> PlatformError:
        return PlatformError(
            "store_unreadable",
            f"cannot read {what} in {self.root}: {error.strerror or error}",
            "check who may read the store's folder, or name another one with --store",
        )

    def copy(self, source: str, target: str) -> None:
        """Hard links where the file system can: objects are replaced as a whole, never written in place."""
        origin, destination = self._file(source), self._file(target)
        if not os.path.isfile(origin):
            raise KeyNotFound(source)
        try:
            self._link(origin, destination)
        except OSError:
            # No hard links here, or too many of this file: then the bytes move.
            self.put_file(target, Path(origin))

    def _unfinished(self) -> str:
        folder = self._prefix + _UNFINISHED
        os.makedirs(folder, exist_ok=True)
        if not self._swept:
            self._swept = True
            _sweep(folder)
        return folder

    def _link(self, origin: str, destination: str) -> None:
        # A write in place would change both names, so what is linked can no longer be written to.
        os.chmod(origin, 0o444)
        try:
            os.link(origin, destination)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(destination), exist_ok=True)
            os.link(origin, destination)
        except FileExistsError:
            if os.path.samefile(origin, destination):
                return
            temporary = os.path.join(self._unfinished(), secrets.token_hex(8))
            os.link(origin, temporary)
            os.replace(temporary, destination)

    def exists(self, key: str) -> bool:
        return os.path.isfile(self._file(key))

    def list(self, prefix: str) -> Iterator[Entry]:
        """Walks only the folder that the prefix names; temporary files of unfinished writes are left out."""
        folder, _, _ = prefix.rpartition("/")
        base = self._file(folder) if folder else self._prefix
        for path, found in sorted(self._files(base), key=itemgetter(0)):
            key = path[len(self._prefix) :]
            if key.startswith(prefix):
                yield Entry(key, found.st_size, found.st_mtime)

    def folders(self, prefix: str) -> Iterator[str]:
        base = self._file(prefix.rstrip("/")) if prefix else self._prefix
        try:
            with os.scandir(base) as entries:
                found = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise self._unreadable(base, error) from error
        yield from sorted(name for name in found if prefix or name != _UNFINISHED)

    def _files(self, base: str) -> Iterator[tuple[str, os.stat_result]]:
        folders = [base]
        unfinished = self._prefix + _UNFINISHED
        while folders:
            try:
                entries = os.scandir(folders.pop())
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise self._unreadable(str(error.filename), error) from error
            with entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.path != unfinished:
                            folders.append(entry.path)
                    else:
                        try:
                            yield entry.path, entry.stat()
                        except FileNotFoundError:
                            continue  # taken away since the listing began

    def delete(self, key: str) -> None:
        try:
            self.path(key).unlink(missing_ok=True)
        except OSError as error:
            raise PlatformError(
                "store_write_failed",
                f"cannot remove {key} from {self.root}: {error.strerror or error}",
                "check who may write to the store's folder",
            ) from error

    def clock(self) -> float:
        return time.time()


def _sweep(folder: str) -> None:
    """Remove what killed programs left of their writes."""
    oldest = time.time() - _STALE_SECONDS
    with os.scandir(folder) as entries:
        for entry in entries:
            # Somebody else may sweep or finish at the same time, or it is another user's: only space is lost.
            with contextlib.suppress(OSError):
                if entry.stat(follow_symlinks=False).st_mtime < oldest:
                    os.unlink(entry.path)
