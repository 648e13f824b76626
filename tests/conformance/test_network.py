"""What a task asks for in each phase is what Harbor resolves for it."""

from __future__ import annotations

from typing import Any

from harbor.models.task.config import NetworkPolicy
from harbor.models.task.config import TaskConfig as HarborTaskConfig
from harbor.models.task.verifier_mode import resolve_step_verifier_mode, resolve_task_verifier_mode
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, VerifierConfig
from harbor.trial.network_policy import resolve_trial_network_plan
from hypothesis import given, settings
from hypothesis import strategies as st

from argo_harbor.planning.wishes import Wish, wishes_of
from tests.support.tasks import make_task

POLICY = st.one_of(
    st.just({}),
    st.just({"network_mode": "public"}),
    st.just({"network_mode": "no-network"}),
    st.lists(st.sampled_from(["a.example", "*.b.example", "9.9.9.9"]), max_size=2).map(
        lambda names: {"network_mode": "allowlist", "allowed_hosts": names}
    ),
)


@st.composite
def verifiers(draw: st.DrawFn) -> dict[str, Any]:
    table = dict(draw(POLICY))
    kind = draw(st.sampled_from(["", "shared", "separate", "own"]))
    if kind in ("shared", "separate"):
        table["environment_mode"] = kind
    if kind == "own":
        table["environment"] = draw(POLICY)
    return table


@settings(max_examples=80, deadline=None)
@given(
    environment=POLICY,
    agent=POLICY,
    verifier=verifiers(),
    step=st.none() | st.fixed_dictionaries({"agent": POLICY, "verifier": verifiers()}),
)
def test_wishes_are_what_harbor_resolves(
    environment: dict[str, Any], agent: dict[str, Any], verifier: dict[str, Any], step: dict[str, Any] | None
) -> None:
    config: dict[str, Any] = {"environment": environment, "agent": agent, "verifier": verifier}
    if step is not None:
        config["steps"] = [{"name": "only", **step}]
    theirs = HarborTaskConfig.model_validate(config)
    their_step = theirs.steps[0] if theirs.steps else None
    mode = (
        resolve_step_verifier_mode(theirs, their_step) if their_step else resolve_task_verifier_mode(theirs)
    )
    plan = resolve_trial_network_plan(
        theirs, AgentConfig(), EnvironmentConfig(), VerifierConfig(), their_step, verifier_mode=mode
    )
    wishes = wishes_of(make_task(config=config), 0 if step is not None else None)
    assert wishes.shared == (mode.value == "shared")
    assert _pair(wishes.setup) == _theirs(plan.agent_env_baseline)
    assert _pair(wishes.agent) == _theirs(plan.agent_phase)
    assert _pair(wishes.verifier) == _theirs(plan.verifier_phase)


def _pair(wish: Wish) -> tuple[str, tuple[str, ...]]:
    return wish.mode, wish.hosts


def _theirs(policy: NetworkPolicy) -> tuple[str, tuple[str, ...]]:
    mode, hosts = policy.network_mode.value, tuple(policy.allowed_hosts or ())
    return ("no-network", ()) if mode == "allowlist" and not hosts else (mode, hosts)
