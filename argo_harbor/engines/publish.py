"""Brings a plan and the tasks it runs into a store: what is missing only, and the plan's head last.

Everything is addressed by content, so publishing twice changes nothing, two who publish at once write the
same bytes, and a publish that was cut off is completed by the next one. A head in the store means that
everything it names is there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from argo_harbor.model.plan import RunPlan
from argo_harbor.model.taskset import Task, Taskset
from argo_harbor.sources.archive import write_archive
from argo_harbor.sources.stored import publish_manifest
from argo_harbor.store import layout
from argo_harbor.store.base import KeyNotFound, Store
from argo_harbor.store.parallel import in_order
from argo_harbor.workflow.assemble import AnyWorkflow
from argo_harbor.workflow.emit import to_yaml

THREADS = 8
"""Uploads at once, to a folder too, where a write waits for the disk; the rest of the time is packing."""
_FEW = 8
"""Objects that are looked for one by one; of more the whole folder is listed."""


class Published(NamedTuple):
    """What was missing and is there now."""

    archives: int
    plan: bool


def publish(
    plan: RunPlan, taskset: Taskset, store: Store, *, workflows: Sequence[AnyWorkflow] = ()
) -> Published:
    """Publish the archives of all tasks that run, the taskset's manifest, then the plan.

    `workflows` is what the plan compiles to. Where that is a parent and its parts, the parent's steps read
    the parts from the store.

    Raises: Refused for a task that changed since it was read or is too large; PlatformError
    `store_write_failed`, `store_unreadable`.
    """
    tasks = {task.index: task for task in taskset.tasks}
    archives = publish_tasks([tasks[part.index] for part in plan.parts], store)
    publish_manifest(taskset, store)
    for number, part in enumerate(workflows[1:]):
        _replace(layout.plan_part(plan.digest, number), to_yaml(part).encode(), store)
    return Published(archives, _publish_plan(plan, store))


def publish_tasks(tasks: Sequence[Task], store: Store) -> int:
    """Publish the archives of tasks. Returns how many were missing. Raises as `publish`."""
    wanted = {layout.task_archive(task.digest): task for task in tasks}
    missing = _missing(wanted, layout.task_archives(), store)
    for _ in in_order(lambda task: _upload(task, store), missing.values(), threads=THREADS):
        pass
    return len(missing)


def _publish_plan(plan: RunPlan, store: Store) -> bool:
    head = layout.plan_head(plan.digest)
    documents = {layout.plan_task(plan.digest, part.index): part for part in plan.parts}
    there = {entry.key for entry in store.list(layout.plan_folder(plan.digest))}
    missing = [(key, part) for key, part in documents.items() if key not in there]
    for _ in in_order(lambda item: store.put(item[0], item[1].canonical()), missing, threads=THREADS):
        pass
    if head in there:
        return False
    store.put(head, plan.head.canonical())
    return True


def _missing[T](wanted: Mapping[str, T], folder: str, store: Store) -> dict[str, T]:
    """Those of the wanted keys that the folder does not hold."""
    if len(wanted) <= _FEW:
        return {key: value for key, value in wanted.items() if not store.exists(key)}
    there = {entry.key for entry in store.list(folder) if entry.key in wanted}
    return {key: value for key, value in wanted.items() if key not in there}


def _upload(task: Task, store: Store) -> None:
    with tempfile.TemporaryDirectory(prefix="argo-harbor-") as folder:
        archive = Path(folder) / "task.tar.gz"
        with archive.open("wb") as out:
            write_archive(task, out)
        store.put_file(layout.task_archive(task.digest), archive)


def _replace(key: str, data: bytes, store: Store) -> None:
    """Unlike all else, a part depends on the program's version too: it must fit this publish's parent."""
    try:
        if store.get(key) == data:
            return
    except KeyNotFound:
        pass  # the first publish of this plan
    store.put(key, data)
