"""A trial in two halves: the agent's and the verifier's, each a runner of its own, and repeatable."""

from __future__ import annotations

from pathlib import Path

import pytest

from argo_harbor.model.record import AgentHalf
from argo_harbor.store import layout
from tests.engines.suite import REWARD, write_task
from tests.runner.conftest import Desk

pytestmark = pytest.mark.sandbox


def separate(suite: Path, *, toml: str = "", test: str = f"echo 1 > {REWARD}", solve: str = "true") -> Path:
    folder = write_task(suite, "separate", toml=toml, test=test, solve=solve)
    text = (folder / "task.toml").read_text()
    (folder / "task.toml").write_text(text + 'environment_mode = "separate"\n')
    return suite


def test_the_second_half_joins_the_first_and_may_be_repeated(desk: Desk) -> None:
    desk.plan(separate(desk.folder / "suite", solve="cd /logs/artifacts; echo hi > 'odd\nname'"))
    assert desk.start("agent").returncode == 0
    half = AgentHalf.from_json(desk.store.get(desk.key(layout.AGENT_HALF)))
    assert (half.gradable, half.record.final) == (True, False)
    assert not desk.store.exists(desk.key(layout.TRIAL))
    done = desk.start("verify", "--grants", "/dev/stdin", uid="b" * 32)
    assert done.returncode == 0, done.stderr
    record = desk.record()
    assert (record.outcome.value, record.rewards, record.ref.uid) == ("scored", {"reward": 1.0}, "a" * 32)
    assert {"agent", "verifier"} <= set(record.phases)
    assert {"agent", "verifier"} <= set(record.policies)
    before = desk.store.get(desk.key(layout.TRIAL))
    assert desk.start("verify", try_=1).returncode == 0
    assert desk.store.get(desk.key(layout.TRIAL)) == before
    assert [path.name for path in desk.scratch.glob("0-*")] == []


def test_an_agent_that_was_never_set_up_is_not_graded(desk: Desk) -> None:
    check = '[environment.healthcheck]\ncommand = "false"\nretries = 1\ninterval_sec = 0.1\n'
    desk.plan(separate(desk.folder / "suite", toml=check))
    assert desk.start("agent").returncode == 0
    assert desk.record().error is not None
    assert not desk.store.exists(desk.key(layout.AGENT_HALF))


def test_a_verifier_whose_sandbox_fails_is_graded_again_without_the_agent(desk: Desk) -> None:
    suite = separate(desk.folder / "suite")
    (suite / "separate" / "tests" / "Dockerfile").write_text("FROM x\nRUN exit 4\n")
    desk.plan(suite)
    assert desk.start("agent").returncode == 0
    assert desk.start("verify").returncode == 75
    assert not desk.store.exists(desk.key(layout.TRIAL))
    assert desk.start("verify", try_=1).returncode == 0
    record = desk.record()
    assert record.error is not None
    assert (record.outcome.value, record.error.code, record.final) == (
        "infrastructure",
        "image_build_failed",
        True,
    )


def test_a_spent_budget_reaches_the_second_half(desk: Desk) -> None:
    desk.plan(separate(desk.folder / "suite"))
    assert desk.start("agent").returncode == 0
    assert desk.start("verify", "--deadline", "1").returncode == 75
    assert (desk.record().outcome.value, desk.record().final) == ("expired", False)
    assert desk.start("verify", try_=1).returncode == 0
    assert desk.record().outcome.value == "scored"
