"""A real submit is interrupted or killed with trials in flight; a merge then accounts for every trial."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argo_harbor.engines.local import LocalEngine
from argo_harbor.errors import Conflict
from argo_harbor.model.states import RunPhase
from tests.engines.conftest import Bench, records_of
from tests.engines.suite import write_task

pytestmark = pytest.mark.sandbox
REPOSITORY = Path(__file__).parents[2]


class Submit:
    """A submit in a process of its own."""

    def __init__(self, suite: Path, bench: Bench) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.engines.drive", str(suite), str(bench.root)],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.run = ""
        self._bench = bench

    def wait_for(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read events until one is wanted."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event: dict[str, Any] = json.loads(line)
            if event["event"] == "RunAccepted":
                self.run = event["run"]
                self._bench.ran.append(self.run)
            if wanted(event):
                return event
        raise AssertionError("the submit ended early")

    def rest(self) -> list[dict[str, Any]]:
        assert self.process.stdout is not None
        return [json.loads(line) for line in self.process.stdout]


def phase(task: str, name: str) -> Callable[[dict[str, Any]], bool]:
    return lambda event: (event["event"], event.get("task"), event.get("phase")) == ("TrialPhase", task, name)


def in_flight(bench: Bench, tmp_path: Path) -> Submit:
    """A run with one trial done, one in its agent, one in its verifier, and one that waits."""
    suite = tmp_path / "suite"
    write_task(suite, "a-done", solve="true")
    write_task(suite, "b-agent", solve="trap '' TERM INT; sleep 300", agent_seconds=600)
    write_task(suite, "c-verifier", test="trap '' TERM INT; sleep 300", verifier_seconds=600)
    submit = Submit(suite, bench)
    reached: set[str] = set()

    def all_there(event: dict[str, Any]) -> bool:
        if event["event"] == "TrialFinished" and event["task"] == "a-done":
            reached.add("a")
        if phase("b-agent", "agent")(event):
            reached.add("b")
        if phase("c-verifier", "verifier")(event):
            reached.add("c")
        return reached == {"a", "b", "c"}

    submit.wait_for(all_there)
    return submit


def check_merge(engine: LocalEngine, run: str) -> None:
    engine.merge(run)
    coverage = engine.survey(run).results().result.coverage
    assert (coverage.total, coverage.scored, coverage.failed, coverage.missing) == (3, 1, 0, 2)
    assert engine.status(run).phase is RunPhase.CANCELLED
    assert (engine.bundle_dir(run) / "run.json").is_file()


def test_sigint_ends_trials_as_cancelled_and_merges_nothing(bench: Bench, tmp_path: Path) -> None:
    submit = in_flight(bench, tmp_path)
    engine = LocalEngine.open(bench.root)
    with pytest.raises(Conflict) as refused:
        engine.merge(submit.run)
    assert refused.value.code == "run_active"
    began = time.monotonic()
    submit.process.send_signal(signal.SIGINT)
    rest = submit.rest()
    assert submit.process.wait() == 130
    assert time.monotonic() - began < 10
    assert rest[-1] == {"event": "Interrupted", "run": submit.run}
    assert {"event": "Stopping", "reason": "interrupted", "running": 2} in rest
    assert bench.settled() == []
    assert not (engine.bundle_dir(submit.run) / "run.json").exists()
    ended = {record.task_name: record.outcome.value for record in records_of(engine, submit.run)}
    assert ended == {"a-done": "scored", "b-agent": "cancelled", "c-verifier": "cancelled"}
    check_merge(engine, submit.run)


def test_after_sigkill_nothing_runs_on_and_a_merge_finishes_the_run(bench: Bench, tmp_path: Path) -> None:
    submit = in_flight(bench, tmp_path)
    submit.process.kill()
    assert submit.process.wait() == -signal.SIGKILL
    submit.rest()
    engine = LocalEngine.open(bench.root)
    check_merge(engine, submit.run)
    assert bench.settled() == []
    ended = {record.task_name: record.outcome.value for record in records_of(engine, submit.run)}
    assert ended == {"a-done": "scored", "b-agent": "cancelled", "c-verifier": "cancelled"}
    # Once more changes nothing.
    check_merge(engine, submit.run)


def test_sigint_ends_a_build(bench: Bench, tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    write_task(suite, "built", dockerfile="FROM x\nRUN trap '' TERM; sleep 300\n")
    submit = Submit(suite, bench)
    submit.wait_for(lambda event: event["event"] == "BuildStarted")
    began = time.monotonic()
    submit.process.send_signal(signal.SIGINT)
    submit.rest()
    assert submit.process.wait() == 130
    assert time.monotonic() - began < 10
    assert bench.settled() == []
    engine = LocalEngine.open(bench.root)
    engine.merge(submit.run)
    assert engine.status(submit.run).phase is RunPhase.CANCELLED


def test_a_killed_runner_is_tried_again(bench: Bench, tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    write_task(suite, "killed", solve="[ -e /nowhere ] || sleep 2")
    submit = Submit(suite, bench)
    submit.wait_for(phase("killed", "agent"))
    (runner,) = [
        int(entry.name)
        for entry in Path("/proc").glob("[0-9]*")
        if "argo_harbor.runner\0trial\0" in _command(entry) and submit.run in _command(entry)
    ]
    os.kill(runner, signal.SIGKILL)
    finished = [event for event in submit.rest() if event["event"] == "TrialFinished"]
    assert submit.process.wait() == 0
    assert [(event["try_"], event["retrying"]) for event in finished] == [(0, True), (1, False)]
    coverage = LocalEngine.open(bench.root).survey(submit.run).results().result.coverage
    assert (coverage.total, coverage.scored) == (1, 1)


def _command(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""
