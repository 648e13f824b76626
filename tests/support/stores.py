"""Stores for tests: the ones that every test of a store's users runs on, and one that counts."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from argo_harbor.store.base import Entry, Store
from argo_harbor.store.credentials import Credentials
from argo_harbor.store.patience import Patience
from argo_harbor.store.s3 import S3Store
from tests.support.s3server import S3Server

QUICK = Patience(attempts=4, first=0.01, longest=0.05, total=10.0)
"""Enough to see that something is repeated, and no waiting."""


def open_s3(server: S3Server, *, endpoint: str = "", root: str = "", patience: Patience = QUICK) -> S3Store:
    """A store in the server's bucket, below a root of its own."""
    return S3Store(
        endpoint or server.endpoint,
        server.bucket,
        root=root or f"tests/{secrets.token_hex(6)}",
        credentials=Credentials(server.access_key, server.secret_key),
        patience=patience,
    )


class Counting:
    """Passes everything on and counts it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: Counter[str] = Counter()
        self.written: list[str] = []
        """Keys in the order of the writes."""

    @property
    def name(self) -> str:
        return self._store.name

    @property
    def parallel(self) -> int:
        return self._store.parallel

    def put(self, key: str, data: bytes) -> None:
        self.calls["put"] += 1
        self._store.put(key, data)
        self.written.append(key)

    def put_file(self, key: str, path: Path) -> None:
        self.calls["put_file"] += 1
        self._store.put_file(key, path)
        self.written.append(key)

    def get(self, key: str) -> bytes:
        self.calls["get"] += 1
        return self._store.get(key)

    def get_file(self, key: str, path: Path) -> None:
        self.calls["get_file"] += 1
        self._store.get_file(key, path)

    def open(self, key: str) -> BinaryIO:
        self.calls["open"] += 1
        return self._store.open(key)

    def copy(self, source: str, target: str) -> None:
        self.calls["copy"] += 1
        self._store.copy(source, target)
        self.written.append(target)

    def exists(self, key: str) -> bool:
        self.calls["exists"] += 1
        return self._store.exists(key)

    def list(self, prefix: str) -> Iterator[Entry]:
        self.calls["list"] += 1
        return self._store.list(prefix)

    def folders(self, prefix: str) -> Iterator[str]:
        self.calls["folders"] += 1
        return self._store.folders(prefix)

    def delete(self, key: str) -> None:
        self.calls["delete"] += 1
        self._store.delete(key)

    def clock(self) -> float:
        return self._store.clock()
