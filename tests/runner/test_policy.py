"""A sandbox whose network never changes holds to the plan or does not start the phase."""

from __future__ import annotations

import asyncio

import pytest

from argo_harbor.model.plan import PhaseRules
from argo_harbor.model.record import AppliedPolicy
from argo_harbor.runner.policy import NOTHING, FixedPolicy, PolicyMismatch

PUBLIC = PhaseRules(mode="public")
HOSTS = PhaseRules(mode="hosts", hosts=("example.com",))


def apply(network: str, rules: PhaseRules, phase: str = "agent") -> AppliedPolicy | None:
    return asyncio.run(FixedPolicy(network, narrowed=True).apply(phase, rules))


def test_what_is_in_force_is_noted_with_the_digest_of_the_planned_rules() -> None:
    assert apply("none", NOTHING) == AppliedPolicy(
        mode="none", digest=NOTHING.content_digest(), narrowed=True
    )
    assert apply("unfenced", PUBLIC) == AppliedPolicy(
        mode="unfenced", digest=PUBLIC.content_digest(), narrowed=True
    )


@pytest.mark.parametrize(
    ("network", "rules"), [("none", PUBLIC), ("none", HOSTS), ("unfenced", HOSTS), ("unfenced", NOTHING)]
)
def test_any_other_rule_keeps_the_phase_from_starting(network: str, rules: PhaseRules) -> None:
    with pytest.raises(PolicyMismatch):
        apply(network, rules)


def test_between_phases_there_is_nothing_to_note() -> None:
    assert apply("unfenced", NOTHING, "deny") is None
