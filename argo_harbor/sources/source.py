"""What every place that tasks come from can do: the command line knows sources only by this.

`directory`, `git`, `hub` and `stored` each have a class of it; its flags decide which one a command uses.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from argo_harbor.model.taskset import Origin, Taskset, TasksetMember, Warned

type Selection = str | Iterable[str | int] | None
"""What `--tasks` takes: indexes, names and globs, comma-separated or as a list; None for all."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The selectable tasks of a source."""

    ref: str
    total: int
    """Tasks of the whole suite."""
    tasks: tuple[tuple[int, TasksetMember], ...]
    """The selected ones with their indexes."""
    origin: Origin | None = None
    warnings: tuple[Warned, ...] = ()

    @classmethod
    def of(cls, taskset: Taskset) -> Listing:
        chosen = tuple((task.index, taskset.members[task.index]) for task in taskset.tasks)
        return cls(taskset.ref, taskset.total, chosen, taskset.origin, taskset.warnings)


class TaskSource(Protocol):
    """One source, opened by nothing but its name: the first call reads."""

    def list(self, tasks: Selection = None) -> Listing:
        """The tasks that `tasks` selects, fetching no more than their names need.

        Raises: UsageError `unknown_tasks`, `no_tasks_selected`, and as `load`.
        """
        ...

    def load(self, tasks: Selection = None) -> Taskset:
        """The tasks that `tasks` selects, with their files in a folder of this machine.

        Raises: UsageError for a name or selection that names nothing, Refused with every finding about the
        files, PlatformError when the source cannot be reached.
        """
        ...


def program_folder(prefix: str) -> Path:
    """A new folder that lives as long as this program, for files that tasks are read from."""
    folder = Path(tempfile.mkdtemp(prefix=f"argo-harbor-{prefix}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
