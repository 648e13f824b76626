"""The running tasks of a plan with the names of their DAG entries: what the compiler walks over."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from argo_harbor.model.plan import ImagePlan, RunPlan, TaskPlan

Side = str
"""A key of `TaskPlan.sides`."""


@dataclass(frozen=True, slots=True, eq=False)
class PlannedTask:
    """One running task."""

    part: TaskPlan
    dag_name: str
    index: int
    images: tuple[tuple[Side, ImagePlan], ...]
    """The images of its pods' containers; the verifier's only where it has one of its own."""
    built: tuple[str, ...]
    """Keys of its images that have to be built, without repeats."""


def planned_tasks(plan: RunPlan, present: Collection[str] = ()) -> list[PlannedTask]:
    """In the plan's order. Images whose keys are `present` in the registry need no build."""
    return [
        _planned(part, entry.dag_name, present)
        for part, entry in zip(plan.parts, plan.head.running, strict=True)
    ]


def _planned(part: TaskPlan, dag_name: str, present: Collection[str]) -> PlannedTask:
    # A verifier of a step has no pod of its own.
    images = [(side, image) for side, image in part.sides.items() if not side.startswith("step-")]
    built = dict.fromkeys(
        image.key for _, image in images if image.kind == "build" and image.key not in present
    )
    return PlannedTask(part, dag_name, part.index, tuple(images), tuple(built))
