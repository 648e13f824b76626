"""What a sandbox reaches in each phase, as the far side saw it while a program knocked everywhere."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from tests.e2e.cluster import hostile
from tests.e2e.cluster.assault import Assault
from tests.e2e.cluster.outside import SERVERS, name_of

pytestmark = pytest.mark.cluster

PHASES = ("setup", "agent", "verifier")
TASK = "phase-by-phase"


def times(attacks: Assault, server: str, task: str = TASK, word: str = "") -> list[float]:
    return [each.at for each in attacks.outside.heard(server, task) if word in ("", each.word)]


def notes(attacks: Assault, server: str) -> list[str]:
    """What the program in the sandbox noted of a server until grading was over."""
    lines = map(json.loads, attacks.file(TASK, hostile.KNOCKS).splitlines())
    return [line["event"] for line in lines if line["name"] == server]


def refused(record: dict[str, Any], phase: str) -> dict[str, int]:
    return {each["host"]: each["count"] for each in record["refused"][phase]}


@pytest.mark.parametrize("phase", PHASES)
def test_a_phase_has_its_hosts(attacks: Assault, phase: str) -> None:
    assert attacks.record(TASK)["outcome"] == "scored"
    assert {each.word for each in attacks.outside.heard(phase, TASK)} == {"knock", "held"}


@pytest.mark.parametrize("server", ["closed", "metadata"])
def test_a_host_of_no_phase_and_a_name_with_a_denied_address_are_never_reached(
    attacks: Assault, server: str
) -> None:
    for task in (TASK, "step-by-step"):
        assert attacks.outside.heard(server, task) == []


@pytest.mark.parametrize(("before", "after"), list(pairwise(PHASES)))
def test_hosts_of_a_phase_end_before_those_of_the_next_begin(
    attacks: Assault, before: str, after: str
) -> None:
    assert max(times(attacks, before)) < min(times(attacks, after))


@pytest.mark.parametrize("phase", ["setup", "agent"])
def test_an_open_connection_dies_with_its_phase_and_stays_dead(attacks: Assault, phase: str) -> None:
    held = [each for each in attacks.outside.heard(phase, TASK) if each.word == "held"]
    assert len({each.connection for each in held}) == 1
    following = PHASES[PHASES.index(phase) + 1]
    assert held[-1].at < min(times(attacks, following)), "the far side hears no more"
    seen = [event for event in notes(attacks, phase) if event.startswith("held")]
    assert seen == ["held", "held no more"], "and neither does the sandbox"


def test_setup_hosts_never_return(attacks: Assault) -> None:
    assert [event for event in notes(attacks, "setup") if "held" not in event] == ["opens", "closes"]
    for task in (TASK, "step-by-step"):
        assert max(times(attacks, "setup", task)) < min(times(attacks, "agent", task))


def test_everything_is_closed_between_the_steps_of_a_task(attacks: Assault) -> None:
    record = attacks.record("step-by-step")
    assert [step["rewards"] for step in record["steps"]] == [{"reward": 1.0}] * 2
    knocks = times(attacks, "agent", "step-by-step")
    silences = [later - earlier for earlier, later in pairwise(knocks) if later - earlier > 2]
    assert len(silences) == 1, "each step's agent has the host, and nobody between them"
    assert silences[0] >= hostile.BETWEEN_STEPS


@pytest.mark.parametrize("phase", PHASES)
def test_the_record_says_what_was_refused_in_each_phase(attacks: Assault, phase: str) -> None:
    seen = refused(attacks.record(TASK), phase)
    closed = [server for server in SERVERS if server != phase and (phase, server) != ("setup", "metadata")]
    for server in closed:
        assert seen[name_of(server)] >= 1


def test_the_record_says_which_rules_were_in_force_in_each_phase(attacks: Assault) -> None:
    policies = attacks.record(TASK)["policies"]
    assert set(policies) == set(PHASES)
    for part in ("digest", "planned"):
        digests = {each[part] for each in policies.values()}
        assert len(digests) == len(PHASES)
        assert {len(digest) for digest in digests} == {64}
    assert {each["mode"] for each in policies.values()} == {"hosts"}
    assert attacks.record("shut-in")["policies"]["agent"]["mode"] == "none"
    assert attacks.record("in-the-open")["policies"]["agent"]["mode"] == "public"
