"""Brings a plan and the tasks it runs into a store: what is missing only, and the plan's head last.

Everything is addressed by content, so publishing twice changes nothing and a publish that was cut off is
completed by the next one. A head in the store means that everything it names is there.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

from argo_harbor.model.plan import RunPlan
from argo_harbor.model.taskset import Task, Taskset
from argo_harbor.sources.archive import write_archive
from argo_harbor.sources.stored import publish_manifest
from argo_harbor.store import layout
from argo_harbor.store.base import Store


class Published(NamedTuple):
    """What was missing and is there now."""

    archives: int
    plan: bool


def publish(plan: RunPlan, taskset: Taskset, store: Store) -> Published:
    """Publish the archives of all tasks that run, the taskset's manifest, then the plan.

    Raises: Refused for a task that changed since it was read or is too large; PlatformError
    `store_write_failed`.
    """
    tasks = {task.index: task for task in taskset.tasks}
    archives = sum(publish_task(tasks[part.index], store) for part in plan.parts)
    publish_manifest(taskset, store)
    if store.exists(layout.plan_head(plan.digest)):
        return Published(archives, plan=False)
    for part in plan.parts:
        store.put(layout.plan_task(plan.digest, part.index), part.canonical())
    store.put(layout.plan_head(plan.digest), plan.head.canonical())
    return Published(archives, plan=True)


def publish_task(task: Task, store: Store) -> bool:
    """Publish one task's archive. Returns whether it was missing."""
    key = layout.task_archive(task.digest)
    if store.exists(key):
        return False
    with tempfile.TemporaryDirectory(prefix="argo-harbor-") as folder:
        archive = Path(folder) / "task.tar.gz"
        with archive.open("wb") as out:
            write_archive(task, out)
        store.put_file(key, archive)
    return True
