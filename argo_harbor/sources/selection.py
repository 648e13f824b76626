"""`--tasks`: which tasks of a suite a run takes. Indexes stay those of the whole suite."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase

from argo_harbor.errors import Finding, UsageError
from argo_harbor.model.taskset import Task, Taskset

_INDEX = re.compile(r"[0-9]+")
_GLOB = re.compile(r"[*?\[]")


def select(taskset: Taskset, wanted: str | Iterable[str] | None) -> Taskset:
    """The tasks that `wanted` names, by index; None means all.

    `wanted` holds entries, each possibly a comma-separated list: an index (digits only), a name, a folder,
    the part of a name after `/`, or a glob over any of the three. Raises UsageError: `unknown_tasks` with
    every entry that names nothing, `no_tasks_selected` when nothing is left.
    """
    if wanted is None:
        return taskset
    parts = [wanted] if isinstance(wanted, str) else list(wanted)
    entries = [entry.strip() for part in parts for entry in part.split(",") if entry.strip()]
    taken: dict[int, Task] = {}
    unknown: list[str] = []
    for entry in entries:
        matched = _matches(taskset.tasks, entry)
        taken.update((task.index, task) for task in matched)
        if not matched:
            unknown.append(entry)
    if not taken and all(_GLOB.search(entry) for entry in unknown):
        asked = ", ".join(repr(entry) for entry in entries) or "nothing"
        raise UsageError("no_tasks_selected", f"the selection is empty: {asked} matches no task", _LIST_HINT)
    if unknown:
        raise _unknown(taskset, unknown)
    return replace(taskset, tasks=tuple(taken[index] for index in sorted(taken)))


_LIST_HINT = "--list-tasks shows every task with its index"


def _matches(tasks: tuple[Task, ...], entry: str) -> list[Task]:
    if _INDEX.fullmatch(entry):
        return [task for task in tasks if task.index == int(entry)]
    if exact := [task for task in tasks if task.name == entry]:
        return exact
    if same := [task for task in tasks if entry in {task.folder, task.short_name}]:
        return same
    if not _GLOB.search(entry):
        return []
    return [
        task
        for task in tasks
        if any(fnmatchcase(text, entry) for text in (task.name, task.folder, task.short_name))
    ]


def _unknown(taskset: Taskset, entries: list[str]) -> UsageError:
    findings = [Finding("unknown_tasks", *_explain(taskset, entry), task=entry) for entry in entries]
    what = "no such task" if len(entries) == 1 else f"{len(entries)} entries name no task"
    return UsageError(
        "unknown_tasks",
        f"{what}: {', '.join(repr(entry) for entry in entries)}",
        findings[0].hint,
        findings,
    )


def _explain(taskset: Taskset, entry: str) -> tuple[str, str]:
    if _INDEX.fullmatch(entry):
        last = max((task.index for task in taskset.tasks), default=0)
        return f"there is no task with index {entry}", f"indexes run from 0 to {last}; {_LIST_HINT}"
    known = {text: task.name for task in taskset.tasks for text in (task.name, task.folder, task.short_name)}
    near = list(dict.fromkeys(known[text] for text in difflib.get_close_matches(entry, known, n=3)))
    message = f"{entry!r} is no task of {taskset.name}"
    return message, f"did you mean {' or '.join(near)}?" if near else _LIST_HINT
