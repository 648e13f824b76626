"""Phases, rules and limits that the callbacks of one trial share."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from argo_harbor.model.plan import PhaseRules, StepPlan
from argo_harbor.model.record import ArtifactLink
from argo_harbor.model.states import VerifierMode
from argo_harbor.runner import session as sessions
from argo_harbor.runner.policy import FixedPolicy, PolicyMismatch
from argo_harbor.runner.session import MAX_LINKS, Session
from tests.support.records import task_plan

PUBLIC = PhaseRules(mode="public")


class NoSandboxes:
    """This test starts none."""

    ignored_from: tuple[str, ...] = ()


def a_session(*, steps: bool = False, agent: PhaseRules | None = None) -> Session:
    part = task_plan(0, "acme/one")
    rules = part.rules.model_copy(update={"agent": agent or part.rules.agent})
    if steps:
        step = StepPlan(
            name="first",
            verifier_mode=VerifierMode.SHARED,
            timeouts=part.timeouts.model_copy(update={"verifier": 7.0}),
            rules=rules,
        )
        part = part.model_copy(update={"steps": (step,)})
    else:
        part = part.model_copy(update={"rules": rules})
    said: list[str] = []
    made = Session(
        part=part,
        task_dir=Path("/nowhere"),
        sandboxes=NoSandboxes(),  # type: ignore[arg-type]
        policy=FixedPolicy("none", narrowed=False),
        announce=said.append,
    )
    made.enter("sandbox")
    made.enter("agent")
    assert said == ["sandbox", "agent"]
    return made


def test_a_phase_ends_when_the_next_begins_and_keeps_its_first_start() -> None:
    session = a_session()
    first = session.phases["agent"].started_at
    session.enter("verifier")
    session.enter("agent")
    session.leave()
    session.leave()
    assert session.phases["agent"].started_at == first
    assert all(phase.finished_at for phase in session.phases.values())


def test_rules_that_cannot_be_applied_keep_the_phase_from_starting_and_are_noted() -> None:
    session = a_session(agent=PUBLIC)
    with pytest.raises(PolicyMismatch):
        asyncio.run(session.apply("agent"))
    assert "agent phase" in session.policy_mismatch
    assert "agent" not in session.policies
    asyncio.run(session.apply("setup"))
    asyncio.run(session.apply("deny"))
    assert set(session.policies) == {"setup"}


def test_a_step_has_rules_and_limits_of_its_own() -> None:
    session = a_session(steps=True, agent=PUBLIC)
    assert session.rules().agent.mode == "none"
    session.step = "first"
    assert session.rules().agent.mode == "public"
    assert (session.timeouts().verifier, session.timeouts("").verifier) == (7.0, 60.0)


def test_a_grading_that_was_read_is_announced_with_its_time() -> None:
    session = a_session()
    session.graded()
    assert session.graded_at > session.phases["sandbox"].started_at


def test_the_list_of_links_ends_somewhere() -> None:
    session = a_session()
    session.add_links([ArtifactLink(path="a", target="b")] * (MAX_LINKS - 1))
    session.add_links([ArtifactLink(path="a", target="b")] * 10)
    assert len(session.links) == MAX_LINKS


def test_a_process_without_a_trial_has_no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_current", [])
    with pytest.raises(RuntimeError):
        sessions.current()
    session = a_session()
    sessions.bind(session)
    assert sessions.current() is session
