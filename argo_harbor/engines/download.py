"""Brings a run's files from the store to a folder: the merged bundle, or one task's tries.

What an interrupted download has brought stays beside the target, and the next one takes it on. A file of the
bundle counts only when it is what the manifest says.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from argo_harbor.bundle.plans import unknown_run
from argo_harbor.errors import PlatformError, UsageError
from argo_harbor.model.bundle import MANIFEST_FILE, RUN_FILE, Manifest
from argo_harbor.store import layout
from argo_harbor.store.base import Entry, KeyNotFound, Store
from argo_harbor.store.folder import resuming
from argo_harbor.store.parallel import in_order


class Downloaded(NamedTuple):
    path: Path
    """Absolute folder that holds what was downloaded."""
    files: int
    bytes: int


def download_bundle(run_id: str, store: Store, target: Path, *, checked: bool = True) -> Downloaded:
    """The merged bundle as `<target>/agent-eval-results/`; an earlier download is replaced.

    Without `checked` files come as they are, for whoever checks them all.

    Raises: UsageError `unknown_run` while there is no whole bundle; PlatformError `store_unreadable` when a
    file is not what the manifest says, `store_write_failed`.
    """
    if not layout.is_run_id(run_id):
        raise unknown_run(run_id, store)
    if not store.exists(layout.bundle(run_id, RUN_FILE)):
        raise UsageError(
            "unknown_run",
            f"{run_id} has no merged results yet",
            f"argo-harbor runs merge {run_id} merges what is there",
        )
    digests = _digests(run_id, store) if checked else {}
    return _download(store, layout.bundle(run_id), target / layout.BUNDLE, digests)


def download_task(run_id: str, store: Store, index: int, target: Path) -> Downloaded:
    """Every try of one task as `<target>/trials/<index>/<attempt>/<try>-<uid>/`, merged or not.

    Raises: UsageError `unknown_run` when no try has started; PlatformError `store_write_failed`.
    """
    prefix = f"{layout.trials(run_id)}{index}/"
    if not any(store.list(prefix)):
        raise UsageError(
            "unknown_run",
            f"no trial of task {index} has started in {run_id}",
            f"argo-harbor runs tasks {run_id} shows why",
        )
    return _download(store, prefix, target / "trials" / str(index), {})


def _digests(run_id: str, store: Store) -> dict[str, str]:
    """SHA-256 by path, from the manifest; empty for a bundle without one that can be read."""
    try:
        manifest = Manifest.from_json(store.get(layout.bundle(run_id, MANIFEST_FILE)))
    except (KeyNotFound, ValidationError):
        # `runs verify` says so; what is there is brought all the same.
        return {}
    return {file.path: file.sha256 for file in manifest.files}


def _download(store: Store, prefix: str, target: Path, digests: Mapping[str, str]) -> Downloaded:
    target = target.absolute()
    entries = list(store.list(prefix))
    with resuming(target) as partial:
        wanted = {entry.key.removeprefix(prefix) for entry in entries}
        _remove_others(partial, wanted)

        def bring(entry: Entry) -> None:
            name = entry.key.removeprefix(prefix)
            _bring(store, entry, partial / name, digests.get(name, ""))

        for _ in in_order(bring, entries, threads=store.parallel):
            pass
    return Downloaded(target, len(entries), sum(entry.size for entry in entries))


def _bring(store: Store, entry: Entry, path: Path, digest: str) -> None:
    if digest and path.is_file() and _sha256(path) == digest:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    store.get_file(entry.key, path)
    if digest and _sha256(path) != digest:
        path.unlink()
        raise PlatformError(
            "store_unreadable",
            f"{entry.key} in {store.name} is not what the bundle's manifest says",
            "argo-harbor runs merge RUN writes the results again",
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _remove_others(folder: Path, wanted: set[str]) -> None:
    """What an earlier download left of a bundle that has changed since."""
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place) / name
            if path.relative_to(folder).as_posix() not in wanted:
                path.unlink()
