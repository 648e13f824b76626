"""Why attempts left no record, as far as an engine knows: pods that never ran, steps that never started.

The argo engine reads it from the cluster, the local one knows it itself; the merge puts it beside what the
store says, and the store comes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from argo_harbor.model.states import RunPhase

EndedBy = Literal[RunPhase.CANCELLED, RunPhase.EXPIRED]


class Cause(NamedTuple):
    """Why an attempt has no record."""

    code: str
    """`not_started`, `image_pull_failed`, `service_failed`, `node_collision_possible`, or the code of a build
    record."""
    message: str
    """A sentence."""


@dataclass(frozen=True, slots=True)
class Causes:
    """What is known besides the records of a run."""

    ended_by: EndedBy | None = None
    attempts: Mapping[tuple[int, int], Cause] = field(default_factory=dict)
    """By task index and attempt. Of an attempt that started it says how its pod ended."""
    tasks: Mapping[int, Cause] = field(default_factory=dict)
    """By task index: of all attempts at it."""
    unstarted: Mapping[tuple[int, int], Cause] = field(default_factory=dict)
    """By task index and attempt: why it never started, as an earlier merge found out."""
    others: Cause | None = None
    """Of every other attempt that never started."""
    seconds: float = 0.0
    """Age of the run when it ended, or now; 0 when unknown."""

    def of(self, index: int, attempt: int) -> Cause | None:
        """What is known of that one attempt."""
        return self.attempts.get((index, attempt)) or self.tasks.get(index)


NOTHING_KNOWN = Causes()
