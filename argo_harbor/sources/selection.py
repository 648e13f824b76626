"""`--tasks`: which tasks of a suite a run takes. Indexes stay those of the whole suite."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from argo_harbor.errors import Finding, UsageError
from argo_harbor.model.taskset import Taskset, TasksetMember

_INDEX = re.compile(r"[0-9]+")
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class _Named:
    """What a selection looks at."""

    index: int
    name: str
    folder: str

    @property
    def texts(self) -> tuple[str, str, str]:
        return self.name, self.folder, self.name.rpartition("/")[2]


def select(taskset: Taskset, wanted: str | Iterable[str | int] | None) -> Taskset:
    """The tasks that `wanted` names, by index; None means all.

    `wanted` holds entries, each possibly a comma-separated list: an index (digits only), a name, a folder,
    the part of a name after `/`, or a glob over any of the three. Raises UsageError: `unknown_tasks` with
    every entry that names nothing, `no_tasks_selected` when nothing is left.
    """
    if wanted is None:
        return taskset
    named = [_Named(task.index, task.name, task.folder) for task in taskset.tasks]
    chosen = set(_choose(taskset.name, named, wanted))
    return replace(taskset, tasks=tuple(task for task in taskset.tasks if task.index in chosen))


def select_members(
    suite: str, members: Sequence[TasksetMember], wanted: str | Iterable[str | int] | None
) -> list[int]:
    """Sorted indexes of the members that `wanted` names. As `select`, before any task is read."""
    if wanted is None:
        return list(range(len(members)))
    named = [_Named(index, member.name, member.folder) for index, member in enumerate(members)]
    return _choose(suite, named, wanted)


def _choose(suite: str, named: Sequence[_Named], wanted: str | Iterable[str | int]) -> list[int]:
    parts = [wanted] if isinstance(wanted, str) else list(wanted)
    entries = [entry.strip() for part in parts for entry in str(part).split(",") if entry.strip()]
    taken: set[int] = set()
    unknown: list[str] = []
    for entry in entries:
        matched = _matches(named, entry)
        taken.update(task.index for task in matched)
        if not matched:
            unknown.append(entry)
    if not taken and all(_GLOB.search(entry) for entry in unknown):
        asked = ", ".join(repr(entry) for entry in entries) or "nothing"
        raise UsageError("no_tasks_selected", f"the selection is empty: {asked} matches no task", _LIST_HINT)
    if unknown:
        raise _unknown(suite, named, unknown)
    return sorted(taken)


_LIST_HINT = "--list-tasks shows every task with its index"


def _matches(named: Sequence[_Named], entry: str) -> list[_Named]:
    if _INDEX.fullmatch(entry):
        # As text, because thousands of digits are more than int() reads.
        wanted = entry.lstrip("0") or "0"
        return [task for task in named if str(task.index) == wanted]
    if exact := [task for task in named if task.name == entry]:
        return exact
    if same := [task for task in named if entry in task.texts]:
        return same
    if not _GLOB.search(entry):
        return []
    return [task for task in named if any(fnmatchcase(text, entry) for text in task.texts)]


def _unknown(suite: str, named: Sequence[_Named], entries: list[str]) -> UsageError:
    findings = [Finding("unknown_tasks", *_explain(suite, named, entry), task=entry) for entry in entries]
    what = "no such task" if len(entries) == 1 else f"{len(entries)} entries name no task"
    return UsageError(
        "unknown_tasks",
        f"{what}: {', '.join(repr(entry) for entry in entries)}",
        findings[0].hint,
        findings,
    )


def _explain(suite: str, named: Sequence[_Named], entry: str) -> tuple[str, str]:
    if _INDEX.fullmatch(entry):
        last = max((task.index for task in named), default=0)
        return f"there is no task with index {entry}", f"indexes run from 0 to {last}; {_LIST_HINT}"
    known = {text: task.name for task in named for text in task.texts}
    near = list(dict.fromkeys(known[text] for text in difflib.get_close_matches(entry, known, n=3)))
    message = f"{entry!r} is no task of {suite}"
    return message, f"did you mean {' or '.join(near)}?" if near else _LIST_HINT
