"""What an engine sees of a run besides its store: where running tasks are, and what holds up the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Step(NamedTuple):
    """A step of the run that is no trial: a build, a gate, a network rule, a part, the merge."""

    name: str
    state: str
    """`running`, `pending`, `succeeded`, `failed` or `omitted`."""
    detail: str = ""


@dataclass(frozen=True)
class Observed:
    """Nothing of it is needed to tell what a run's results are."""

    details: Mapping[int, str] = field(default_factory=dict)
    """Of tasks that are not over, by index: `agent`, `verifier`, `pending: <the scheduler's reason>`."""
    building: frozenset[int] = frozenset()
    """Indexes of tasks whose image is being built."""
    steps: tuple[Step, ...] = ()
    complete: bool = True
    """False when the engine could not see everything."""


NOTHING = Observed()
