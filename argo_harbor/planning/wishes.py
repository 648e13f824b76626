"""What a task asks for in each phase, before any profile: resolved as Harbor does.

The environment's network is the baseline, and the agent's and the verifier's tables, those of a step first,
replace it in their phases. A separate verifier has the baseline of its own environment.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from argo_harbor.model.task import EnvironmentConfig, PhaseNetwork, StepConfig
from argo_harbor.model.taskset import Task

Asked = Literal["no-network", "allowlist", "public"]


class Wish(NamedTuple):
    """What the task asks for in one phase."""

    mode: Asked
    hosts: tuple[str, ...]
    key: str
    """Where task.toml says so."""


class Wishes(NamedTuple):
    """The phases of one step, or of a task without steps."""

    setup: Wish
    agent: Wish
    verifier: Wish
    shared: bool
    """True when grading happens in the agent's sandbox."""


def wishes_of(task: Task, step: int | None = None) -> Wishes:
    """What the task, or one of its steps, asks for in each phase; as Harbor resolves it."""
    config = task.config
    chosen = task.steps[step] if step is not None else None
    baseline = _environment_wish(config.environment, "environment")
    agent, verifier = _phase_wish(config.agent, "agent"), _phase_wish(config.verifier, "verifier")
    if chosen is not None:
        agent = _phase_wish(chosen.agent, f"steps[{step}].agent") or agent
        verifier = _phase_wish(chosen.verifier, f"steps[{step}].verifier") or verifier
    own = config.verifier_environment(chosen)
    grading_baseline = baseline
    if own is not None and own is not config.environment:
        grading_baseline = _environment_wish(own, _verifier_table(chosen, step))
    return Wishes(baseline, agent or baseline, verifier or grading_baseline, own is None)


def _verifier_table(step: StepConfig | None, number: int | None) -> str:
    in_step = step is not None and step.verifier.environment is not None
    return f"steps[{number}].verifier.environment" if in_step else "verifier.environment"


def _environment_wish(environment: EnvironmentConfig, key: str) -> Wish:
    return _wish(environment.network_mode, environment.allowed_hosts, key)


def _phase_wish(phase: PhaseNetwork, key: str) -> Wish | None:
    if phase.network_mode is None:
        return None
    return _wish(phase.network_mode, phase.allowed_hosts, key)


def _wish(mode: Asked, hosts: list[str] | None, key: str) -> Wish:
    # An allowlist without hosts denies everything, so it is no wish at all.
    if mode == "allowlist" and not hosts:
        return Wish("no-network", (), key)
    return Wish(mode, tuple(hosts or ()), key)
