"""Taskset, spec, platform and profile to a plan: everything is decided here, before anything runs.

Pure: no file, clock or network. The same inputs give the same bytes on every machine. Refusals that depend on
the engine are made later (`planning.local`, `planning.argo`), because one plan serves every engine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from argo_harbor.errors import Refused, UsageError
from argo_harbor.model.plan import Grants, Limits, PlanHead, RunPlan, Skipped, TaskEntry, TaskPlan, TasksetRef
from argo_harbor.model.platform import BUILT_IN, Platform
from argo_harbor.model.profile import Profile
from argo_harbor.model.spec import Publication, RunSpec
from argo_harbor.model.taskset import Task, Taskset
from argo_harbor.planning.agents import ChosenAgent, plan_agent
from argo_harbor.planning.build_inputs import merged_inputs
from argo_harbor.planning.builds import BUILD_SECONDS, build_seconds
from argo_harbor.planning.canary import plan_canary
from argo_harbor.planning.environment import Granted, plan_grants
from argo_harbor.planning.images import ImagePlanner
from argo_harbor.planning.names import dag_names
from argo_harbor.planning.network import Networks, allowed_hosts
from argo_harbor.planning.profiles import CLOSED, default_profile_name
from argo_harbor.planning.report import LeftOut, Refusals, Report
from argo_harbor.planning.resources import Sizes
from argo_harbor.planning.services import ServicePlanner, taken_names
from argo_harbor.planning.tasks import TaskPlanner

MERGE_SECONDS = 1800
"""For the merge, which waits up to 150 s for trials that are still writing, and tries three times."""


def plan(
    taskset: Taskset,
    spec: RunSpec,
    *,
    platform: Platform | None = None,
    profile: Profile | None = None,
    skip_refused: bool = False,
    refused: Refusals = MappingProxyType({}),
) -> RunPlan:
    """Plan a run of the taskset's selected tasks.

    `platform` defaults to the built-in one. `profile` is the loaded profile; without it the name comes from
    the spec or the platform, and only `closed` is known without reading a file. With `skip_refused` a task
    that cannot run stands in the plan with its reason, and the others run. `refused` brings what whoever
    shall run the plan found wrong with tasks, by their names.

    Raises:
        Refused: with every finding of the request, or else of every task that cannot run.
        UsageError: `no_tasks_selected`.
    """
    if not taskset.tasks:
        raise UsageError("no_tasks_selected", "there is no task to run", "select tasks with --tasks")
    platform = platform or BUILT_IN
    profile = profile or _known_profile(spec, platform)
    request = Report()
    agent = plan_agent(spec, platform, request)
    grants = plan_grants(spec, request)
    planner = _task_planner(spec, platform, profile, agent, grants, request)
    _check_request(spec, profile, request)
    if request.findings:
        raise Refused.of(request.findings, what="request")

    tasks = sorted(taskset.tasks, key=lambda task: task.index)
    parts: list[TaskPlan] = []
    left_out = LeftOut(refused)
    for task in tasks:
        report = Report(task)
        part = planner.plan(task, report)
        if not left_out.takes(task, report):
            parts.append(part)
    left_out.check(tasks, skip=skip_refused)

    return RunPlan(
        head=PlanHead(
            taskset=TasksetRef(
                name=taskset.name,
                digest=taskset.digest,
                total=taskset.total,
                source=taskset.origin.pinned if taskset.origin else "",
            ),
            agent=agent.plan,
            grants=grants,
            n_attempts=spec.spec.target.n_attempts,
            max_retries=spec.spec.target.max_retries,
            infra_retries=platform.workflow.infra_retries,
            reward_key=spec.spec.reward_key,
            limits=_limits(spec, profile, tasks, parts),
            canary=plan_canary(parts, spec.canary_size),
            profile=profile,
            # Where the settings came from is no part of a plan, so reading it back gives the same object.
            platform=platform.model_copy(update={"built_in": False}),
            denied=planner.denied,
            publication=_publication(spec, taskset),
            tasks=_entries(tasks, parts, left_out.skipped()),
        ),
        parts=tuple(parts),
        taskset=taskset,
    )


def _publication(spec: RunSpec, taskset: Taskset) -> Publication:
    """Labels of the results. A dataset named without a version is the taskset as it is now."""
    asked = spec.publication.intake_dataset
    dataset = asked if not asked or "@" in asked else f"{asked}@{taskset.digest}"
    return spec.publication.model_copy(update={"intake_dataset": dataset or taskset.dataset_label})


def _known_profile(spec: RunSpec, platform: Platform) -> Profile:
    name = spec.execution.sandbox.profile or default_profile_name(platform)
    if name == CLOSED.name:
        return CLOSED
    raise Refused(
        "unknown_profile",
        f"profile {name!r} was not loaded",
        f"load it and pass it as profile, or leave the name out to run {CLOSED.name}",
    )


def _task_planner(
    spec: RunSpec,
    platform: Platform,
    profile: Profile,
    agent: ChosenAgent,
    grants: Grants,
    request: Report,
) -> TaskPlanner:
    model = agent.plan.model if agent.plan.calls_model else None
    allowed = allowed_hosts(
        profile,
        platform,
        request,
        installs=agent.installs,
        model=model.hosts if model else (),
        closed_book=model is not None and model.closed_book,
    )
    images = ImagePlanner(
        platform.registry,
        platform.base_image_mirror,
        merged_inputs(platform, spec.execution.build, request),
    )
    sizes = Sizes(profile, spec.execution.sandbox, request)
    granted = Granted.of(grants)
    return TaskPlanner(
        profile=profile,
        networks=Networks(allowed),
        images=images,
        sizes=sizes,
        services=ServicePlanner(images, sizes, granted, taken=taken_names(platform)),
        granted=granted,
        setup_seconds=agent.setup_seconds,
        oracle=agent.plan.name == "oracle" and not agent.plan.import_path,
        denied=allowed.denied,
    )


def _check_request(spec: RunSpec, profile: Profile, report: Report) -> None:
    if spec.deployment is not None:
        report.refuse(
            "invalid_spec",
            "serving a model inside a run does not exist yet",
            key="deployment",
            hint="name a model of the platform file in spec.target.source.model.ref and leave deployment out",
        )
    if spec.timeout_seconds is not None and spec.timeout_seconds > profile.max_timeout_seconds:
        report.refuse(
            "resources_exceed_policy",
            f"{spec.timeout_seconds} s is above {profile.max_timeout_seconds} s, "
            f"the longest run of profile {profile.name}",
            key="timeout_seconds",
            hint="shorten it, or split the taskset with --tasks",
        )


def _limits(spec: RunSpec, profile: Profile, tasks: Sequence[Task], parts: Sequence[TaskPlan]) -> Limits:
    built = {part.index for part in parts if any(image.key for image in part.sides.values())}
    longest = max(
        (build_seconds(task) for task in tasks if task.index in built),
        default=0.0,
    )
    default = min(profile.default_timeout_seconds, profile.max_timeout_seconds)
    wish = spec.execution.max_concurrent_task_jobs
    return Limits(
        cap=min(profile.per_run_cap, wish or profile.per_run_cap),
        timeout_seconds=spec.timeout_seconds or default,
        queue_timeout_seconds=profile.queue_timeout_seconds,
        build_seconds=max(BUILD_SECONDS, math.ceil(longest)) if built else 0,
        merge_seconds=MERGE_SECONDS,
    )


def _entries(
    tasks: Sequence[Task], parts: Sequence[TaskPlan], skipped: Mapping[str, Skipped]
) -> tuple[TaskEntry, ...]:
    digests = {part.index: part.content_digest() for part in parts}
    entries = []
    for task, dag_name in zip(tasks, dag_names([task.name for task in tasks]), strict=True):
        if task.name in skipped:
            entries.append(TaskEntry(index=task.index, name=task.name, skipped=skipped[task.name]))
        else:
            part = digests[task.index]
            entries.append(TaskEntry(index=task.index, name=task.name, dag_name=dag_name, part=part))
    return tuple(entries)
