"""The running tasks of a plan with the names of their DAG entries: what the compiler walks over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from argo_harbor.model.plan import ImagePlan, RunPlan, TaskPlan

Side = Literal["agent", "verifier"]


@dataclass(frozen=True, slots=True, eq=False)
class PlannedTask:
    """One running task."""

    part: TaskPlan
    dag_name: str
    index: int
    images: tuple[tuple[Side, ImagePlan], ...]
    """The images of its sandboxes; the verifier's only where it has one of its own."""
    built: tuple[str, ...]
    """Keys of its images that have to be built, without repeats."""


def planned_tasks(plan: RunPlan) -> list[PlannedTask]:
    """In the plan's order."""
    return [_planned(part, entry.dag_name) for part, entry in zip(plan.parts, plan.head.running, strict=True)]


def _planned(part: TaskPlan, dag_name: str) -> PlannedTask:
    images: list[tuple[Side, ImagePlan]] = [("agent", part.images.agent)]
    if part.images.verifier is not None:
        images.append(("verifier", part.images.verifier))
    built = dict.fromkeys(image.key for _, image in images if image.kind == "build")
    return PlannedTask(part, dag_name, part.index, tuple(images), tuple(built))
