"""The object store behind one small interface: keys are `/`-separated, values are bytes.

There are no write-once marks and no locks, since S3 has none that every client knows: who reads must be ready
for a key that is not there yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol


class KeyNotFound(Exception):
    """No object of that key."""


class Entry(NamedTuple):
    """One listed object."""

    key: str
    size: int
    """Bytes."""
    modified: float
    """Store's clock, seconds since the epoch."""


class Store(Protocol):
    """Reads and writes whole objects. Writes are atomic: a reader sees old or new bytes, never a part.

    Every method that writes raises PlatformError `store_write_failed`, every one that reads
    `store_unreadable`, and every one that takes a key ValueError for what is none (`store.keys`).
    """

    @property
    def name(self) -> str:
        """What to show to people: a path or a URL."""
        ...

    @property
    def parallel(self) -> int:
        """How many requests at once pay off; 1 where threads would only get in each other's way."""
        ...

    def put(self, key: str, data: bytes) -> None: ...

    def put_file(self, key: str, path: Path) -> None: ...

    def get(self, key: str) -> bytes:
        """Raises KeyNotFound."""
        ...

    def get_file(self, key: str, path: Path) -> None:
        """Raises KeyNotFound."""
        ...

    def open(self, key: str) -> BinaryIO:
        """Read an object piece by piece; the caller closes it. Raises KeyNotFound."""
        ...

    def copy(self, source: str, target: str) -> None:
        """Make `target` hold what `source` holds, without moving bytes where the store can.

        Raises KeyNotFound.
        """
        ...

    def exists(self, key: str) -> bool: ...

    def list(self, prefix: str) -> Iterator[Entry]:
        """All objects whose key starts with the prefix, sorted by key."""
        ...

    def folders(self, prefix: str) -> Iterator[str]:
        """Names of what lies directly below a prefix that ends in a slash, as far as it is no object itself;
        sorted. Costs no look at what is in them.
        """
        ...

    def delete(self, key: str) -> None:
        """Deleting what is not there is no error."""
        ...

    def clock(self) -> float:
        """Now on the clock that `Entry.modified` is on: seconds since the epoch, perhaps whole ones.

        One request to a server; programs on several machines measure a common budget by it.
        """
        ...
