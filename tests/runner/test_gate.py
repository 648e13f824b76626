"""The gate's exit status, and that its log says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from argo_harbor.runner.gate import decide, main
from argo_harbor.store import layout
from tests.support.pods import WORKFLOW_UID, make_pod, store_root
from tests.support.records import make_run


def test_the_rest_follows_a_good_canary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(store_root(tmp_path), 3, canary=(0,))
    run.add(0, reward=0.0)
    assert decide(run.plan, run.run_id, make_pod(tmp_path)) == 0
    assert capsys.readouterr().out.startswith("1 canary task: nothing that the others")
    assert run.store.exists(layout.workflow_mark(run.run_id, WORKFLOW_UID))


def test_a_bad_canary_stops_the_rest_and_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(store_root(tmp_path), ["acme/a", "acme/b", "acme/c"], canary=(0, 1))
    run.add(0)
    run.add(1, outcome="errored", error="agent_auth_failed")
    assert decide(run.plan, run.run_id, make_pod(tmp_path)) == 1
    said = capsys.readouterr().out
    assert said.startswith("2 canary tasks: the rest of the run does not start")
    assert "  acme/b: agent_auth_failed" in said


def test_outside_of_a_pod_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--plan", "ab", "--run", "run-1"]) == 1
    assert "error[platform_not_configured]" in capsys.readouterr().err
