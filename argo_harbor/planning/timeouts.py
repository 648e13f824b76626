"""How long each phase of a trial may take, and the deadline of its pods: the sum of it all.

Numbers are Harbor's where Harbor has them. Note that a step without a verifier table has Harbor's default of
600 s and not the task's `[verifier].timeout_sec`: that is how Harbor runs it, so it is what is planned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from argo_harbor.model.plan import PhaseTimeouts
from argo_harbor.model.profile import Profile
from argo_harbor.model.task import HealthcheckConfig, StepConfig, VerifierCollectConfig
from argo_harbor.model.taskset import Task
from argo_harbor.planning.report import Report

TRANSFER_SECONDS = 600.0
"""For all uploads and downloads around one agent phase; Harbor bounds one archive transfer by as much."""


class Times(NamedTuple):
    """Timeouts of one task."""

    whole: PhaseTimeouts
    steps: tuple[PhaseTimeouts, ...]
    outer_seconds: int
    """Deadline of a trial pod, whole seconds."""
    verifier_outer_seconds: int
    """Deadline of the pod of a separate verifier, 0 where there is none."""


def plan_times(task: Task, profile: Profile, setup_seconds: float, report: Report) -> Times:
    """Timeouts of a task and its steps. `setup_seconds` is the agent's own.

    Reports `resources_exceed_policy` where a trial could last longer than the profile's longest run.
    """
    steps = tuple(_step_times(task, number, profile, setup_seconds) for number in range(len(task.steps)))
    whole = _sum(steps) if steps else _single(task, profile, setup_seconds)
    outer = _outer(whole)
    longest = profile.max_timeout_seconds
    if outer > longest:
        report.refuse(
            "resources_exceed_policy",
            f"the phases of a trial may take {outer} s together, and profile {profile.name} "
            f"allows a run {longest} s",
            key="agent.timeout_sec",
            hint="shorten the agent's, verifier's or healthcheck's times",
        )
    if task.config.environment.build_timeout_sec > longest:
        report.refuse(
            "resources_exceed_policy",
            f"build_timeout_sec is above the {longest} s that profile {profile.name} allows a run",
            key="environment.build_timeout_sec",
            hint="shorten it",
        )
    separate = not steps and task.config.verifier_mode() == "separate"
    verifying = profile.start_timeout_seconds + whole.verifier + TRANSFER_SECONDS
    return Times(whole, steps, outer, math.ceil(verifying) if separate else 0)


def _single(task: Task, profile: Profile, setup_seconds: float) -> PhaseTimeouts:
    config = task.config
    return _times(
        start=profile.start_timeout_seconds,
        healthcheck=_healthcheck(config.environment.healthcheck),
        setup=setup_seconds,
        agent=config.agent.timeout_sec or profile.agent_timeout_seconds,
        verifier=config.verifier.timeout_sec,
        collect=_collect(config.verifier.collect),
    )


def _step_times(task: Task, number: int, profile: Profile, setup_seconds: float) -> PhaseTimeouts:
    config, step = task.config, task.steps[number]
    first = number == 0
    starts = int(first) + int(config.verifier_mode(step) == "separate")
    return _times(
        start=starts * profile.start_timeout_seconds,
        healthcheck=_healthcheck(step.healthcheck)
        + (_healthcheck(config.environment.healthcheck) if first else 0),
        setup=setup_seconds if first else 0,
        agent=_step_agent(step, task, profile),
        verifier=step.verifier.timeout_sec,
        collect=_collect((*config.verifier.collect, *step.verifier.collect)),
    )


def _step_agent(step: StepConfig, task: Task, profile: Profile) -> float:
    return step.agent.timeout_sec or task.config.agent.timeout_sec or profile.agent_timeout_seconds


def _times(
    *, start: float, healthcheck: float, setup: float, agent: float, verifier: float, collect: float
) -> PhaseTimeouts:
    return PhaseTimeouts(
        start=float(start),
        healthcheck=float(healthcheck),
        setup=float(setup),
        agent=float(agent),
        verifier=float(verifier),
        collect=float(collect),
        transfer=TRANSFER_SECONDS,
    )


def _healthcheck(check: HealthcheckConfig | None) -> float:
    """Upper bound of Harbor's loop: every failure that counts, and the start period with one overrun."""
    if check is None:
        return 0.0
    failures = max(1, check.retries)
    counted = failures * check.timeout_sec + (failures - 1) * check.interval_sec
    overrun = check.timeout_sec + check.start_interval_sec if check.start_period_sec else 0.0
    return check.start_period_sec + overrun + counted


def _collect(hooks: Sequence[VerifierCollectConfig]) -> float:
    return sum(hook.timeout_sec for hook in hooks)


def _sum(steps: Sequence[PhaseTimeouts]) -> PhaseTimeouts:
    return PhaseTimeouts(
        start=math.fsum(step.start for step in steps),
        healthcheck=math.fsum(step.healthcheck for step in steps),
        setup=math.fsum(step.setup for step in steps),
        agent=math.fsum(step.agent for step in steps),
        verifier=math.fsum(step.verifier for step in steps),
        collect=math.fsum(step.collect for step in steps),
        transfer=math.fsum(step.transfer for step in steps),
    )


def _outer(times: PhaseTimeouts) -> int:
    before = (times.start, times.healthcheck, times.setup)
    return math.ceil(math.fsum((*before, times.agent, times.verifier, times.collect, times.transfer)))
