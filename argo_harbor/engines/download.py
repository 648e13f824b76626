"""Brings a run's files from the store to a folder: the merged bundle, or one task's tries."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from argo_harbor.bundle.plans import unknown_run
from argo_harbor.errors import UsageError
from argo_harbor.model.bundle import RUN_FILE
from argo_harbor.store import layout
from argo_harbor.store.base import Entry, Store
from argo_harbor.store.folder import replacing
from argo_harbor.store.parallel import in_order


class Downloaded(NamedTuple):
    path: Path
    """Absolute folder that holds what was downloaded."""
    files: int
    bytes: int


def download_bundle(run_id: str, store: Store, target: Path) -> Downloaded:
    """The merged bundle as `<target>/agent-eval-results/`; an earlier download is replaced.

    Raises: UsageError `unknown_run` while there is no whole bundle; PlatformError `store_write_failed`.
    """
    if not layout.is_run_id(run_id):
        raise unknown_run(run_id, store)
    if not store.exists(layout.bundle(run_id, RUN_FILE)):
        raise UsageError(
            "unknown_run",
            f"{run_id} has no merged results yet",
            f"argo-harbor runs merge {run_id} merges what is there",
        )
    return _download(store, layout.bundle(run_id), target / layout.BUNDLE)


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
    return _download(store, prefix, target / "trials" / str(index))


def _download(store: Store, prefix: str, target: Path) -> Downloaded:
    target = target.absolute()
    files = size = 0
    with replacing(target) as fresh:

        def fetch(entry: Entry) -> int:
            path = fresh / entry.key.removeprefix(prefix)
            path.parent.mkdir(parents=True, exist_ok=True)
            store.get_file(entry.key, path)
            return entry.size

        for fetched in in_order(fetch, store.list(prefix), threads=store.parallel):
            files, size = files + 1, size + fetched
    return Downloaded(target, files, size)
