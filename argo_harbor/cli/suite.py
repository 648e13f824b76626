"""`--list-tasks`: which tasks a source has, uploading nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from argo_harbor.cli import output

if TYPE_CHECKING:
    from argo_harbor.model.taskset import Taskset


def print_tasks(taskset: Taskset, *, as_json: bool) -> None:
    if as_json:
        from argo_harbor.model.documents import Item, ListedTask, TaskListDocument

        output.document(
            TaskListDocument(
                taskset_ref=taskset.ref,
                tasks=tuple(ListedTask(index=task.index, name=task.name) for task in taskset),
                warnings=Item.each(taskset.warnings),
            )
        )
        return
    output.warnings(taskset.warnings)
    output.table(
        ["#", "Task", "Folder"], ([str(task.index), task.name, task.folder] for task in taskset), right=["#"]
    )
    output.line(f"\n{len(taskset)} of {taskset.total} tasks, {taskset.ref}")
