"""Which image a build step makes: one of a run's task, or one of a plan of builds only."""

from __future__ import annotations

from dataclasses import dataclass

from argo_harbor.bundle.plans import read_builds, read_head, read_part
from argo_harbor.errors import PlatformError
from argo_harbor.model.plan import ImagePlan
from argo_harbor.model.platform import Platform
from argo_harbor.store.base import Store


@dataclass(frozen=True, slots=True)
class BuildJob:
    """One image, and whose files it is made of."""

    image: ImagePlan
    task: str
    """Name of the task."""
    digest: str
    """Its content digest, 64 hex."""
    platform: Platform
    seconds: int
    """What the pod is given."""
    run: str = ""
    """Empty outside of runs."""


def job_of_run(store: Store, *, run: str, plan: str, index: int, side: str) -> BuildJob:
    """The image of one container of a task. `plan` is the digest of the run's plan.

    Raises: PlatformError `plan_unreadable`; ValueError for a container whose image is not built.
    """
    head = read_head(plan, store)
    part = read_part(head, plan, index, store)
    image = part.sides.get(side)
    if image is None or image.kind != "build":
        raise ValueError(f"task {index} has no image to build for its {side}")
    return BuildJob(image, part.name, part.digest, head.platform, head.limits.build_seconds, run)


def job_of_builds(store: Store, *, builds: str, place: int) -> BuildJob:
    """The image at one place of a build plan. `builds` is the digest of that plan.

    Raises: PlatformError `plan_unreadable`.
    """
    plan = read_builds(builds, store)
    if not 0 <= place < len(plan.images):
        raise PlatformError(
            "plan_unreadable", f"the build plan has no image {place}", "start the builds again"
        )
    planned = plan.images[place]
    return BuildJob(planned.image, planned.task, planned.digest, plan.platform, plan.build_seconds)
