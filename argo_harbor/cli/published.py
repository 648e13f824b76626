"""The lines that say what a publish did, the same for `runs submit` and `tasksets create`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argo_harbor.sources.publish import PublishedTask, PublishedTaskset

SHOWN_DIGITS = 12
"""Of a digest; as many suffice to name a taskset."""
MOST_TASKS = 50
"""Of a run whose tasks are named one by one; the command that publishes names all."""


def published_lines(taskset: PublishedTaskset) -> Iterator[str]:
    """What happened to the tasks of a run and to their taskset."""
    if len(taskset.tasks) <= MOST_TASKS:
        yield from map(task_line, taskset.tasks)
    else:
        same = len(taskset.tasks) - taskset.added
        yield f"Published {taskset.added} of {len(taskset.tasks)} tasks, {same} unchanged"
    yield taskset_line(taskset)


def task_line(task: PublishedTask) -> str:
    return f"{_done(task.new)} task {short(task.ref)}"


def taskset_line(taskset: PublishedTaskset) -> str:
    return (
        f"{_done(taskset.new)} taskset {short(taskset.ref)} ({len(taskset.tasks)} of {taskset.total} tasks)"
    )


def short(ref: str) -> str:
    """`name#digest` with as much of the digest as is needed."""
    name, _, digest = ref.rpartition("#")
    return f"{name}#{digest[:SHOWN_DIGITS]}"


def _done(new: bool) -> str:
    return "Published" if new else "Unchanged"
