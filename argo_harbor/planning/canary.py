"""Which tasks run first, so that a mistake of the whole suite shows before the rest has started."""

from __future__ import annotations

from collections.abc import Sequence

from argo_harbor.model.plan import TaskPlan

TaskClass = tuple[str, str, str, bool]


def class_of(part: TaskPlan) -> TaskClass:
    """What can break a task in its own way: network mode, verifier mode, built or prebuilt image, and
    whether there are other containers."""
    return part.rules.asked, part.verifier_mode.value, part.images.agent.kind, bool(part.services)


def plan_canary(parts: Sequence[TaskPlan], size: int) -> tuple[int, ...]:
    """Indexes of at most `size` tasks, sorted: the first of every class present, then by index."""
    ordered = sorted(parts, key=lambda part: part.index)
    first_of_class = {class_of(part): part.index for part in reversed(ordered)}
    chosen = sorted(first_of_class.values())[:size]
    rest = [part.index for part in ordered if part.index not in chosen]
    return tuple(sorted(chosen + rest[: size - len(chosen)]))
