"""Tasks in a Git repository: `--harbor-git`."""

from __future__ import annotations

from collections.abc import Callable

from argo_harbor.model.taskset import Taskset
from argo_harbor.sources.source import Listing, Selection


class GitSource:
    """See `TaskSource`."""

    def __init__(self, text: str, *, say: Callable[[str], None] = lambda text: None) -> None:
        self._text = text
        self._say = say

    def list(self, tasks: Selection = None) -> Listing:
        return Listing.of(self.load(tasks))

    def load(self, tasks: Selection = None) -> Taskset:
        raise NotImplementedError
