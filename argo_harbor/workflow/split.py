"""Cuts a run into parts, each a Workflow that Argo can hold: by computed size, never by a number of tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from argo_harbor.errors import Refused
from argo_harbor.workflow.chunks import families
from argo_harbor.workflow.limits import MAX_WORKFLOW_BYTES, fits, size
from argo_harbor.workflow.objects import Workflow
from argo_harbor.workflow.tasks import PlannedTask

Assemble = Callable[[Sequence[PlannedTask], int], Workflow]
"""Makes the part with that number out of some tasks."""


def split(
    tasks: Sequence[PlannedTask],
    assemble: Assemble,
    weight: Callable[[PlannedTask], int],
    *,
    first: int,
    least: int = 1,
) -> list[Workflow]:
    """The fewest parts of about equal weight that all fit, but at least `least`, numbered from `first`.

    `weight` is a task's share of a part's size in bytes. Tasks that share an image stay together; an image of
    very many tasks can still be in several parts: they run one after another, so the later ones find it in
    the registry. Raises Refused when one task alone does not fit.
    """
    ordered = [task for family in families(tasks) for task in family]
    weights = list(accumulate(weight(task) for task in ordered))
    number = max(-(-weights[-1] // MAX_WORKFLOW_BYTES), least) if weights else 0
    while True:
        cuts = _even(ordered, weights, number)
        parts = [assemble(cut, first + place) for place, cut in enumerate(cuts)]
        too_large = [cut for cut, part in zip(cuts, parts, strict=True) if not fits(part)]
        if not too_large:
            return parts
        if alone := [cut[0].part.name for cut in too_large if len(cut) == 1]:
            raise Refused(
                "invalid_spec",
                f"the attempts at {alone[0]} alone do not fit into one Workflow",
                "ask for fewer attempts in one run",
            )
        # What stands once in every part weighs on no task: grow by as much as the largest part is too large.
        worst = max(size(part).total for part in parts)
        number = max(number + 1, -(-number * worst // MAX_WORKFLOW_BYTES))


def _even(ordered: Sequence[PlannedTask], weights: Sequence[int], number: int) -> list[Sequence[PlannedTask]]:
    """At most `number` runs of tasks; each ends where its share of the total weight is reached."""
    parts: list[Sequence[PlannedTask]] = []
    start = 0
    for share in range(1, number + 1):
        bound = weights[-1] * share // number
        end = start
        while end < len(ordered) and weights[end] <= bound:
            end += 1
        if end > start:
            parts.append(ordered[start:end])
            start = end
    return parts
