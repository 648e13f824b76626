"""The plan of a workflow that only builds images: `builds/<digest>.json`, content-addressed as a run's plan.

Each of its pods reads it and takes one image; so nothing of a task and no value of a build argument has to
stand in the workflow.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from argo_harbor.model.base import Model
from argo_harbor.model.plan import Hex64, ImagePlan, Skipped
from argo_harbor.model.platform import Platform


class PlannedImage(Model):
    """One image to build, from the files of the first task that uses it."""

    image: ImagePlan
    task: str
    """Name of that task."""
    digest: Hex64
    """Its content digest; names the archive in the store."""
    side: str
    """Which of its containers uses the image."""
    tasks: tuple[str, ...]
    """Names of all tasks of the selection that use it."""


class BuildPlan(Model):
    """Everything that building the images of a taskset needs to know."""

    schema_version: Literal["builds-1"] = "builds-1"
    taskset: str
    """`name#digest`."""
    platform: Platform
    denied: tuple[str, ...]
    """Ranges that builds never reach."""
    cap: int = Field(ge=1)
    """Builds at once."""
    build_seconds: int = Field(ge=1)
    """Upper bound of one build."""
    images: tuple[PlannedImage, ...]
    skipped: dict[str, Skipped] = Field(default_factory=dict)
    """Tasks that have no image, by name, where the others were asked for all the same."""

    @property
    def by_key(self) -> dict[str, PlannedImage]:
        return {planned.image.key: planned for planned in self.images}

    def only(self, keys: frozenset[str]) -> BuildPlan:
        """The plan of some of its images."""
        return self.model_copy(
            update={"images": tuple(each for each in self.images if each.image.key in keys)}
        )
