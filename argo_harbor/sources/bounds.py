"""How large a task may be: what may be packed can be unpacked, and no archive can swell beyond it."""

from __future__ import annotations

from argo_harbor.sources.tree import MAX_FILES

MAX_FILE_BYTES = 4 << 30
MAX_TOTAL_BYTES = 16 << 30
MAX_NAME_BYTES = 255
"""Of one part of a path, as file systems have it."""
MAX_PATH_BYTES = 4096
MAX_DEPTH = 200
"""Folders above a file; the standard library makes and removes folders by recursion."""
MAX_FOLDERS = MAX_FILES
MAX_NAMES_BYTES = 32 << 20
"""Of all paths together, since whoever unpacks keeps them in memory."""


class TooMuch(ValueError):
    """The task passes a bound; the text says which, to stand behind the name of what passed it."""


class FileTooMuch(TooMuch):
    """One file passes a bound by itself."""


class Bounds:
    """Follows the files of one task."""

    def __init__(self) -> None:
        self._files = 0
        self._bytes = 0
        self._names = 0
        self._folders: set[str] = set()

    def take(self, path: str, size: int) -> None:
        """Count one file or link. `path` is relative and has no empty parts. Raises TooMuch."""
        if size > MAX_FILE_BYTES:
            raise FileTooMuch(f"has {size} bytes, more than {MAX_FILE_BYTES}")
        if path.count("/") > MAX_DEPTH:
            raise FileTooMuch(f"lies more than {MAX_DEPTH} folders deep")
        self._files += 1
        self._bytes += size
        self._names += len(path.encode())
        folder = path.rpartition("/")[0]
        while folder and folder not in self._folders:
            self._folders.add(folder)
            folder = folder.rpartition("/")[0]
        for number, most, what in (
            (self._files, MAX_FILES, "files"),
            (self._bytes, MAX_TOTAL_BYTES, "bytes"),
            (self._names, MAX_NAMES_BYTES, "bytes of paths"),
            (len(self._folders), MAX_FOLDERS, "folders"),
        ):
            if number > most:
                raise TooMuch(f"has more than {most} {what}")
