"""What a canary shows about the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from argo_harbor.bundle.canary import gate, read_canary
from argo_harbor.bundle.collect import Collector
from tests.support.records import make_run


@pytest.mark.parametrize(
    ("changes", "reasons"),
    [
        ({}, ()),
        ({"reward": 0.0}, ()),
        ({"outcome": "errored", "error": "agent_crashed"}, ()),
        ({"outcome": "errored", "error": "verifier_timeout"}, ()),
        ({"outcome": "unscored", "error": "reward_missing"}, ()),
        ({"outcome": "errored", "error": "agent_setup_failed"}, ("acme/one: agent_setup_failed",)),
        ({"outcome": "errored", "error": "agent_auth_failed"}, ("acme/one: agent_auth_failed",)),
        ({"outcome": "errored", "error": "verifier_crashed"}, ("acme/one: verifier_crashed",)),
        ({"outcome": "infrastructure", "error": "sandbox_failed"}, ("acme/one: sandbox_failed",)),
    ],
)
def test_the_gate(tmp_path: Path, changes: dict[str, object], reasons: tuple[str, ...]) -> None:
    run = make_run(tmp_path, ["acme/one"])
    record = run.record(0, uid=run.uid(), **changes)
    assert gate([("acme/one", record)]) == reasons


def test_a_trial_that_never_ran_stops_the_rest() -> None:
    assert gate([("acme/one", None)]) == ("acme/one: no trial of it could run",)


def test_canary_tasks_are_judged_by_what_the_store_holds(tmp_path: Path) -> None:
    run = make_run(tmp_path, ["acme/good", "acme/broken", "acme/lost", "acme/rest"])
    run.add(0)
    run.add(1, outcome="errored", error="agent_setup_failed")
    run.start(2)
    run.add(3, outcome="infrastructure", error="sandbox_failed")
    collector = Collector(run.run_id, run.store, run.head, run.plan)
    assert read_canary(collector, (0, 1, 2)) == (
        "acme/broken: agent_setup_failed",
        "acme/lost: trial_lost: try 0 started and left no record",
    )
    assert read_canary(collector, (0,)) == ()
