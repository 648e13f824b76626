"""Publishes a taskset: the archives that a store lacks, then the manifest that names them.

Called before every run, by `tasksets create` and by `compile --publish`. Archives are addressed by content,
so publishing twice changes nothing, two who publish at once write the same content, and what was cut off is
completed by the next publish. The manifest comes last: it is only written when every archive that was asked
for is in the store.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from argo_harbor.errors import Finding, PlatformError, Refused
from argo_harbor.model.taskset import Task, Taskset
from argo_harbor.sources.archive import write_archive
from argo_harbor.sources.fetch import fetch_task, stored_sizes
from argo_harbor.sources.manifest import publish_manifest
from argo_harbor.store import layout
from argo_harbor.store.base import Store
from argo_harbor.store.parallel import in_order

THREADS = 8
"""Uploads at once, to a folder too, where a write waits for the disk; the rest of the time is packing."""


@dataclass(frozen=True, slots=True)
class PublishedTask:
    """One task that is in the store now."""

    index: int
    name: str
    digest: str
    new: bool
    """It was missing, or it was damaged and has been replaced."""

    @property
    def ref(self) -> str:
        return f"{self.name}#{self.digest}"


@dataclass(frozen=True, slots=True)
class PublishedTaskset:
    """A taskset that is in the store now, with the tasks that were asked for."""

    ref: str
    tasks: tuple[PublishedTask, ...]
    """By index."""
    total: int
    """Tasks of the whole suite."""
    new: bool
    """Its manifest or one of the tasks was missing."""

    @property
    def added(self) -> int:
        """Tasks that were missing."""
        return sum(task.new for task in self.tasks)


def publish_taskset(
    taskset: Taskset,
    store: Store,
    *,
    verify: bool = False,
    told: Callable[[PublishedTask], object] = lambda task: None,
) -> PublishedTaskset:
    """Publish the selected tasks, then the manifest.

    What the store lists is taken for whole, since no broken upload becomes an object; with `verify` every
    archive is read back instead, and one that is not what its digest says is replaced. `told` hears of each
    task in order of index, as soon as it is there.

    Raises:
        Refused: `source_changed` with every file that is no longer what was read, `invalid_task_config` for
            tasks that are too large. All other tasks are published, the manifest is not.
        PlatformError: `store_write_failed`, `store_unreadable`.
    """
    tasks = []
    findings: list[Finding] = []
    there = stored_sizes((task.digest for task in taskset.tasks), store)
    bring = partial(_bring, there=there, store=store, verify=verify)
    for task, brought in zip(taskset.tasks, in_order(bring, _once(taskset), threads=THREADS), strict=True):
        findings += brought.findings
        if not brought.findings:
            tasks.append(PublishedTask(task.index, task.name, task.digest, brought.new))
            told(tasks[-1])
    if findings:
        raise Refused.of(findings)
    manifest = publish_manifest(taskset, store)
    new = manifest or any(task.new for task in tasks)
    return PublishedTaskset(taskset.ref, tuple(tasks), taskset.total, new)


class _Wanted(NamedTuple):
    task: Task
    first: bool
    """No task before it has the same content."""


class _Brought(NamedTuple):
    new: bool
    findings: tuple[Finding, ...] = ()


def _once(taskset: Taskset) -> Iterator[_Wanted]:
    seen: set[str] = set()
    for task in taskset.tasks:
        yield _Wanted(task, task.digest not in seen)
        seen.add(task.digest)


def _bring(wanted: _Wanted, *, there: Mapping[str, int], store: Store, verify: bool) -> _Brought:
    task = wanted.task
    if not wanted.first:
        return _Brought(new=False)
    if task.digest in there and not (verify and _is_damaged(task, store)):
        return _Brought(new=False)
    try:
        with tempfile.TemporaryDirectory(prefix="argo-harbor-") as folder:
            archive = Path(folder) / "task.tar.gz"
            with archive.open("wb") as out:
                write_archive(task, out)
            store.put_file(layout.task_archive(task.digest), archive)
    except Refused as error:
        return _Brought(new=False, findings=error.items)
    except OSError as error:
        raise PlatformError(
            "store_write_failed",
            f"cannot pack {task.name} in {tempfile.gettempdir()}: {error.strerror or error}",
            "free some space there, or let TMPDIR name another folder",
        ) from error
    return _Brought(new=True)


def _is_damaged(task: Task, store: Store) -> bool:
    """Whether the archive does not unpack to the task, as a runner would find out."""
    with tempfile.TemporaryDirectory(prefix="argo-harbor-") as folder:
        try:
            fetch_task(store, task.digest, Path(folder) / "task")
        except Refused:
            return True
    return False
