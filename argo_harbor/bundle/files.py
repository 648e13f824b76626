"""Writing a bundle so that half of one is never taken for a whole.

Everything is drafted in a temporary folder first. Publishing then removes the old `run.json`, puts evidence,
files and manifest into the store, and writes the new `run.json` last: whoever finds it finds the rest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import BinaryIO, NamedTuple, Self

from argo_harbor.errors import PlatformError
from argo_harbor.model.base import Model
from argo_harbor.model.bundle import MANIFEST_FILE, RUN_FILE, Manifest, RunFile
from argo_harbor.store import layout
from argo_harbor.store.base import KeyNotFound, Store
from argo_harbor.store.parallel import in_order

_PIECE = 1 << 16
"""Bytes read at once; larger pieces cost more to allocate than they save."""


def pretty(model: Model) -> bytes:
    """A JSON file of the bundle: two spaces, sorted keys."""
    return (json.dumps(model.as_data(), indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def line(model: Model) -> bytes:
    """A JSONL line of the bundle: sorted keys."""
    return (json.dumps(model.as_data(), sort_keys=True, ensure_ascii=False) + "\n").encode()


class Listed(NamedTuple):
    """A file of the bundle as the manifest names it."""

    size: int
    sha256: str

    @classmethod
    def of(cls, source: BinaryIO) -> Self:
        size, digest = 0, hashlib.sha256()
        while piece := source.read(_PIECE):
            size += len(piece)
            digest.update(piece)
        return cls(size, digest.hexdigest())


class Lines:
    """One JSONL file being drafted."""

    def __init__(self, path: Path) -> None:
        self._out: BinaryIO = path.open("wb", buffering=1 << 20)

    def add(self, row: Model) -> None:
        self._out.write(line(row))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._out.close()


class Draft:
    """A bundle before it is published."""

    def __init__(self, folder: Path, run_id: str, store: Store) -> None:
        self._folder = folder
        self._run_id = run_id
        self._store = store
        self._evidence: dict[str, tuple[str, Listed]] = {}
        self._files: list[str] = []

    def lines(self, name: str) -> Lines:
        """A JSONL file to fill; close it before publishing."""
        self._files.append(name)
        return Lines(self._folder / name)

    def write(self, name: str, data: bytes) -> None:
        self._files.append(name)
        (self._folder / name).write_bytes(data)

    def look_at(self, key: str) -> Listed:
        """What the manifest will say of an object of the store; from several threads. Raises KeyNotFound."""
        with self._store.open(key) as source:
            return Listed.of(source)

    def add_evidence(self, ref: str, key: str, listed: Listed) -> None:
        """Take the object that was looked at into the bundle, at `ref`."""
        self._evidence[ref] = (key, listed)

    def publish(self) -> None:
        """Replace the run's bundle by this draft. Safe to repeat after any interruption.

        Raises PlatformError `store_write_failed`, OSError when the draft cannot be read back.
        """
        store, run_id = self._store, self._run_id
        manifest = pretty(self._manifest())
        kept = {layout.bundle(run_id, name) for name in (*self._files, *self._evidence)}
        store.delete(layout.bundle(run_id, RUN_FILE))
        stray = [entry.key for entry in store.list(layout.bundle(run_id)) if entry.key not in kept]
        self._all(store.delete, stray)
        self._all(self._copy, self._evidence)
        for name in self._files:
            store.put_file(layout.bundle(run_id, name), self._folder / name)
        store.put(layout.bundle(run_id, MANIFEST_FILE), manifest)
        store.put(layout.bundle(run_id, RUN_FILE), pretty(RunFile(run_id=run_id)))

    def _copy(self, ref: str) -> None:
        key, _ = self._evidence[ref]
        try:
            self._store.copy(key, layout.bundle(self._run_id, ref))
        except KeyNotFound as error:
            raise PlatformError(
                "store_write_failed", f"{key} vanished while it was merged", "merge the run again"
            ) from error

    def _all(self, action: Callable[[str], None], items: Iterable[str]) -> None:
        for _ in in_order(action, items, threads=self._store.parallel):
            pass

    def _manifest(self) -> Manifest:
        listed = {ref: found for ref, (_, found) in self._evidence.items()}
        for name in self._files:
            with (self._folder / name).open("rb") as source:
                listed[name] = Listed.of(source)
        files = [
            {"path": ref, "size": found.size, "sha256": found.sha256} for ref, found in sorted(listed.items())
        ]
        return Manifest.from_data({"run_id": self._run_id, "files": files})


@contextmanager
def drafting(run_id: str, store: Store, scratch: Path | None = None) -> Iterator[Draft]:
    """A draft in a temporary folder that is gone afterwards, below `scratch` or the system's own.

    Raises PlatformError `store_write_failed` when the draft does not fit on the disk.
    """
    try:
        with TemporaryDirectory(prefix="argo-harbor-merge-", dir=scratch) as folder:
            yield Draft(Path(folder), run_id, store)
    except OSError as error:
        where = scratch or Path("the temporary folder")
        raise PlatformError(
            "store_write_failed",
            f"cannot draft the results of {run_id} in {where}: {error.strerror or error}",
            "free some space, or set TMPDIR to a folder with more of it, and merge again",
        ) from error
