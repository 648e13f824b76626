"""The images of a taskset as a plan of their own, for building them before any run. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import MappingProxyType

from argo_harbor.errors import Refused, UsageError
from argo_harbor.model.build import BuildInputs
from argo_harbor.model.build_plan import BuildPlan, PlannedImage
from argo_harbor.model.plan import ImagePlan
from argo_harbor.model.platform import Platform
from argo_harbor.model.profile import Profile
from argo_harbor.model.taskset import Task, Taskset
from argo_harbor.planning.build_inputs import merged_inputs
from argo_harbor.planning.images import ImagePlanner
from argo_harbor.planning.network import denied_ranges
from argo_harbor.planning.report import LeftOut, Refusals, Report
from argo_harbor.planning.services import service_images

BUILD_SECONDS = 2100
"""At least this long may one image build take; a task may ask for more."""
BUILDS_AT_ONCE = 8
"""Builds are heavier on nodes and registries than trials, so they have a cap of their own."""


def plan_builds(
    taskset: Taskset,
    *,
    platform: Platform,
    profile: Profile,
    inputs: BuildInputs | None = None,
    cap: int = BUILDS_AT_ONCE,
    skip_refused: bool = False,
    refused: Refusals = MappingProxyType({}),
) -> BuildPlan:
    """Every image of the selected tasks that has to be built, each once, in the order of the tasks.

    `profile` only says which ranges builds may not reach. A task with prebuilt images brings none. With
    `skip_refused` a task that is refused stands in the plan with its reason, and the others are built.
    `refused` brings what whoever shall build found wrong with tasks, by their names.

    Raises:
        Refused: with every finding of the settings, or else of every refused task, unless these are skipped
            and others are left.
        UsageError: `no_tasks_selected`.
    """
    if not taskset.tasks:
        raise UsageError("no_tasks_selected", "there is no task to build for", "select tasks with --tasks")
    request = Report()
    given = merged_inputs(platform, inputs or BuildInputs(), request)
    if request.findings:
        raise Refused.of(request.findings, what="request")
    planner = ImagePlanner(platform.registry, platform.base_image_mirror, given)
    left_out = LeftOut(refused)
    users: dict[str, list[tuple[Task, str, ImagePlan]]] = {}
    tasks = sorted(taskset.tasks, key=lambda task: task.index)
    for task in tasks:
        report = Report(task)
        sides = list(_sides(task, planner, report))
        if left_out.takes(task, report):
            continue
        for side, image in sides:
            if image.key:
                users.setdefault(image.key, []).append((task, side, image))
    left_out.check(tasks, skip=skip_refused)
    return BuildPlan(
        taskset=taskset.ref,
        platform=platform.model_copy(update={"built_in": False}),
        denied=denied_ranges(profile, platform),
        cap=cap,
        build_seconds=max(BUILD_SECONDS, math.ceil(max(map(build_seconds, tasks)))),
        images=tuple(_planned(found) for found in users.values()),
        skipped=left_out.skipped(),
    )


def build_seconds(task: Task) -> float:
    """The longest time that the task allows one of its builds."""
    config = task.config
    verifiers = (config.verifier_environment(step) for step in task.steps or (None,))
    return max(
        config.environment.build_timeout_sec,
        *(environment.build_timeout_sec for environment in verifiers if environment is not None),
        0.0,
    )


def _sides(task: Task, planner: ImagePlanner, report: Report) -> Iterator[tuple[str, ImagePlan]]:
    """The same images under the same names as `TaskPlan.sides`."""
    images, of_steps = planner.plan(task, report)
    yield "agent", images.agent
    yield from service_images(task, planner, report)
    if images.verifier is not None:
        yield "verifier", images.verifier
    for number, image in enumerate(of_steps):
        if image is not None:
            yield f"step-{number}", image


def _planned(users: list[tuple[Task, str, ImagePlan]]) -> PlannedImage:
    task, side, image = users[0]
    names = dict.fromkeys(user.name for user, _, _ in users)
    return PlannedImage(image=image, task=task.name, digest=task.digest, side=side, tasks=tuple(names))
