"""Brings a plan and the tasks it runs into a store: what is missing only, and the plan's head last.

Everything is addressed by content, so publishing twice changes nothing, two who publish at once write the
same bytes, and a publish that was cut off is completed by the next one. A head in the store means that
everything it names is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from argo_harbor.model.plan import RunPlan
from argo_harbor.model.taskset import Taskset
from argo_harbor.sources.publish import THREADS, PublishedTaskset, publish_taskset
from argo_harbor.store import layout
from argo_harbor.store.base import KeyNotFound, Store
from argo_harbor.store.parallel import in_order
from argo_harbor.workflow.assemble import AnyWorkflow
from argo_harbor.workflow.emit import to_yaml


class Published(NamedTuple):
    """What the run needs is in the store."""

    taskset: PublishedTaskset
    """With the tasks that run."""
    plan: bool
    """The plan was missing."""


def publish(
    plan: RunPlan, taskset: Taskset, store: Store, *, workflows: Sequence[AnyWorkflow] = ()
) -> Published:
    """Publish the archives of all tasks of the plan, the taskset's manifest, then the plan.

    Also those of tasks that were left out: from the store, the same command shall find the same.

    `workflows` is what the plan compiles to. Where that is a parent and its parts, the parent's steps read
    the parts from the store.

    Raises: as `publish_taskset`.
    """
    tasks = {task.index: task for task in taskset.tasks}
    run = replace(taskset, tasks=tuple(tasks[entry.index] for entry in plan.head.tasks))
    published = publish_taskset(run, store)
    for number, part in enumerate(workflows[1:]):
        _replace(layout.plan_part(plan.digest, number), to_yaml(part).encode(), store)
    return Published(published, _publish_plan(plan, store))


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


def _replace(key: str, data: bytes, store: Store) -> None:
    """Unlike all else, a part depends on the program's version too: it must fit this publish's parent."""
    try:
        if store.get(key) == data:
            return
    except KeyNotFound:
        pass  # the first publish of this plan
    store.put(key, data)
