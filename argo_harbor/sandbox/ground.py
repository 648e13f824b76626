"""What the sandboxes of a run stand on: programs of the host, the lowest layers, programs of ours inside.

`Preview` shows this machine's own programs, `ImageGround` the files of container images. `bubblewrap.py` and
`commands.py` know only what is here.
"""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Literal, NamedTuple

from argo_harbor.model.base import Model

type Program = Literal["sh", "setpriv", "setsid", "tar", "mkdir"]
"""What we start inside for ourselves, whatever the task's files bring."""


class Tree(NamedTuple):
    """One overlay of a sandbox."""

    name: str
    """Name of its folder among a sandbox's changes."""
    target: str
    """Where it is inside."""
    lower: tuple[str, ...]
    """Layers on the host, the lowest first."""


class Ground(Model):
    """Prepared once a run, loaded by every process of it."""

    bwrap: str
    """Absolute paths of the host's programs."""
    nsenter: str
    setpriv: str
    setsid: str

    @abstractmethod
    def trees(self, layers: str) -> tuple[Tree, ...]:
        """The overlays of a sandbox on a base whose own layers lie in the folder `layers`, empty for none."""

    @abstractmethod
    def inside(self, program: Program) -> list[str]:
        """How a command line inside starts with one of our programs."""

    @property
    @abstractmethod
    def shells(self) -> tuple[str, ...]:
        """The shells that run a task's commands: the first that is there."""

    @property
    def shown(self) -> tuple[tuple[Path, str], ...]:
        """Folders of the host that are shown read-only, and where."""
        return ()
