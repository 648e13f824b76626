"""The public way to read tasks from a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable

from argo_harbor.model.taskset import Taskset
from argo_harbor.sources.directory import read_directory
from argo_harbor.sources.selection import select


def load_taskset(path: str | os.PathLike[str], *, tasks: str | Iterable[str | int] | None = None) -> Taskset:
    """Read the suite, or the one task, in the folder `path`, narrowed to `tasks`.

    `tasks` takes what `--tasks` takes: indexes, names, folders and globs, comma-separated or as a list.
    Raises Refused with every finding about the files, UsageError about the selection.
    """
    return select(read_directory(path), tasks)
