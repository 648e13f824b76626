"""Git LFS pointers among the files of a suite: the content that they stand for was never fetched.

They are refused, because the digest and the task would be those of the pointers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from argo_harbor.errors import Finding
from argo_harbor.model.taskset import Task
from argo_harbor.sources.git.tree import is_content
from argo_harbor.sources.member import printable

_HINT = "clone it, run `git lfs pull` and use --harbor-dir; or bring large data in a prebuilt image"


def hashed_pointers(tasks: Iterable[Task], root: str, pointers: Iterable[str]) -> list[Finding]:
    """A finding for each file of a task whose content is one of the `pointers`, paths below `root`."""
    real = os.path.realpath(root)
    places = {f"{real}/{path}" for path in pointers}
    if not places:
        return []
    return [
        _finding(task.name, _below(real, f"{task.root}/{file.path}"))
        for task in tasks
        for file in task.files
        if os.path.realpath(f"{task.root}/{file.path}") in places
    ]


def placed_pointers(pointers: Iterable[str], *, is_task: bool) -> list[Finding]:
    """The same for a suite that cannot be read, perhaps because of them: by their places alone."""
    findings = []
    for path in pointers:
        task, _, inner = ("", "", path) if is_task else path.partition("/")
        if is_content(inner):
            findings.append(_finding(printable(task), path))
    return findings


def _below(root: str, path: str) -> str:
    return os.path.relpath(path, root)


def _finding(task: str, path: str) -> Finding:
    message = "is a Git LFS pointer, not the content it stands for"
    return Finding("lfs_pointer", message, _HINT, task=task, file=printable(path))
