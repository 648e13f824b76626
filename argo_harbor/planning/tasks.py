"""One task of a suite to its part of the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argo_harbor.model.plan import ArtifactPlan, ImagePlan, StepPlan, TaskPlan
from argo_harbor.model.profile import Profile
from argo_harbor.model.states import VerifierMode
from argo_harbor.model.task import MAIN_SERVICE, ArtifactConfig
from argo_harbor.model.taskset import Task
from argo_harbor.planning.environment import Granted, plan_needs
from argo_harbor.planning.images import ImagePlanner
from argo_harbor.planning.network import Networks, Planned
from argo_harbor.planning.report import Report
from argo_harbor.planning.resources import Sizes
from argo_harbor.planning.services import ServicePlanner
from argo_harbor.planning.timeouts import Times, plan_times
from argo_harbor.planning.wishes import wishes_of


@dataclass(frozen=True)
class TaskPlanner:
    """What all tasks of a run are planned with."""

    profile: Profile
    networks: Networks
    images: ImagePlanner
    sizes: Sizes
    services: ServicePlanner
    granted: Granted
    setup_seconds: float
    """Of the agent."""
    oracle: bool
    """True for the agent that reads [solution].env."""
    denied: tuple[str, ...]

    def plan(self, task: Task, report: Report) -> TaskPlan:
        """The task's part; worth nothing once the report has findings."""
        images, step_images = self.images.plan(task, report)
        resources = self.sizes.plan(task, report)
        times = plan_times(task, self.profile, self.setup_seconds, report)
        networks = self._networks(task, report)
        whole = self.networks.together(networks) if task.steps else networks[0]
        needs = plan_needs(task, self.granted, report, oracle=self.oracle)
        services = self.services.plan(task, resources.agent, report)
        if services.granted:
            read = tuple(sorted({*needs.environment, *services.granted}))
            needs = needs.model_copy(update={"environment": read})
        if services.workdir and not task.config.environment.workdir:
            agent = images.agent.model_copy(update={"workdir": services.workdir})
            images = images.model_copy(update={"agent": agent})
        config = task.config
        _refuse_services(task, report)
        modes = [VerifierMode(config.verifier_mode(step)) for step in task.steps or (None,)]
        return TaskPlan(
            index=task.index,
            name=task.name,
            folder=task.folder,
            digest=task.digest,
            images=images,
            resources=resources,
            rules=whole.rules,
            timeouts=times.whole,
            outer_seconds=times.outer_seconds,
            verifier_outer_seconds=times.verifier_outer_seconds,
            verifier_mode=VerifierMode.SEPARATE if VerifierMode.SEPARATE in modes else VerifierMode.SHARED,
            kill_before_grading=whole.kill,
            steps=_steps(task, modes, times, networks, step_images),
            artifacts=tuple(_artifact(entry) for entry in _artifacts(task)),
            env=needs,
            agent_user=_user(config.agent.user),
            verifier_user=_user(config.verifier.user),
            users=_users(task),
            services=services.services,
            main_environment=services.environment,
            main_mounts=services.mounts,
        )

    def _networks(self, task: Task, report: Report) -> list[Planned]:
        if not task.steps:
            return [self.networks.plan(wishes_of(task), report)]
        return [
            self.networks.plan(wishes_of(task, number), report, first=number == 0)
            for number in range(len(task.steps))
        ]


def _steps(
    task: Task,
    modes: Sequence[VerifierMode],
    times: Times,
    networks: Sequence[Planned],
    images: Sequence[ImagePlan | None],
) -> tuple[StepPlan, ...]:
    each = zip(task.steps, modes, times.steps, networks, images, strict=True) if task.steps else ()
    return tuple(
        StepPlan(
            name=step.name, verifier_mode=mode, timeouts=timeouts, rules=network.rules, verifier_image=image
        )
        for step, mode, timeouts, network, image in each
    )


def _artifacts(task: Task) -> list[str | ArtifactConfig]:
    found = list(task.config.artifacts)
    for step in task.steps:
        found += step.artifacts
    return found


def _artifact(entry: str | ArtifactConfig) -> ArtifactPlan:
    if isinstance(entry, str):
        return ArtifactPlan(source=entry)
    return ArtifactPlan(
        source=entry.source,
        destination=entry.destination or "",
        exclude=tuple(entry.exclude),
        service=entry.service or "",
    )


def _refuse_services(task: Task, report: Report) -> None:
    config = task.config
    hooks = [*config.verifier.collect, *(hook for step in task.steps for hook in step.verifier.collect)]
    named = {hook.service for hook in hooks}
    named |= {entry.service for entry in _artifacts(task) if not isinstance(entry, str) and entry.service}
    for service in sorted(named - {MAIN_SERVICE}):
        report.refuse(
            "invalid_compose_file",
            f"names the compose service {service!r}, and only in the sandbox can anything be run or read",
            hint=f"use the service {MAIN_SERVICE}, or leave the task out with --tasks",
        )


def _users(task: Task) -> tuple[str, ...]:
    config = task.config
    named = [config.agent.user, config.verifier.user, *(hook.user for hook in config.verifier.collect)]
    for step in task.steps:
        named += [step.agent.user, step.verifier.user, *(hook.user for hook in step.verifier.collect)]
    return tuple(sorted({_user(user) for user in named} - {""}))


def _user(user: str | int | None) -> str:
    return "" if user is None else str(user)
