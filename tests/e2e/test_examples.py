"""The example suites end to end: every task says in its task.toml what it must come to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli

from argo_harbor import read_trials
from tests.support.program import EXAMPLES, Done, Program

pytestmark = pytest.mark.e2e
MIXED = sorted(path.parent.name for path in EXAMPLES.glob("mixed/*/task.toml"))


def expected(folder: str, agent: str) -> dict[str, Any]:
    toml = tomli.loads((EXAMPLES / "mixed" / folder / "task.toml").read_text())
    found = toml["metadata"][f"expect_{agent}"]
    assert isinstance(found, dict)
    return found


def trial_of(program: Program, done: Done, folder: str) -> dict[str, Any]:
    run_id = done.json("run-document-1")["run"]["id"]
    tasks = program("runs", "tasks", run_id, "--json").json("tasks-document-1")["tasks"]
    (task,) = [task for task in tasks if task["name"].endswith(f"/{folder}")]
    assert task["phase"] == "succeeded"
    (trial,) = task["trials"]
    assert isinstance(trial, dict)
    return trial


@pytest.mark.parametrize("folder", MIXED)
@pytest.mark.parametrize("agent", ["oracle", "nop"])
def test_a_task_comes_to_what_it_says(
    folder: str, agent: str, shared: Program, request: pytest.FixtureRequest
) -> None:
    done: Done = request.getfixturevalue(f"mixed_{agent}")
    trial = trial_of(shared, done, folder)
    wanted = expected(folder, agent)
    assert (trial["outcome"], (trial["error"] or {}).get("code")) == (wanted["outcome"], wanted.get("error"))
    if wanted["outcome"] == "scored":
        assert trial["rewards"]["reward"] == wanted["reward"]
        if "rewards" in wanted:
            assert trial["rewards"] == wanted["rewards"]
    else:
        assert trial["rewards"] is None


def test_the_run_is_completed_and_covered(shared: Program, mixed_oracle: Done) -> None:
    document = mixed_oracle.json("run-document-1")
    assert mixed_oracle.status == 0
    assert (document["run"]["phase"], document["run"]["result_state"]) == ("completed", "ready")
    assert (document["run"]["base"], document["run"]["profile"]) == ("preview", "closed")
    results = shared("runs", "results", document["run"]["id"], "--json").json("results-document-1")
    coverage = results["result"]["coverage"]
    outcomes = [expected(folder, "oracle")["outcome"] for folder in MIXED]
    assert coverage["total"] == len(MIXED)
    assert coverage["scored"] == outcomes.count("scored")
    assert coverage["scored"] + coverage["failed"] + coverage["missing"] == coverage["total"]


def test_no_mean_holds_an_unscored_trial(shared: Program, mixed_oracle: Done) -> None:
    run_id = mixed_oracle.json("run-document-1")["run"]["id"]
    results = shared("runs", "results", run_id, "--json").json("results-document-1")
    rewards = [expected(folder, "oracle").get("reward") for folder in MIXED]
    scored = [reward for reward in rewards if reward is not None]
    (score,) = [
        score
        for score in results["result"]["summary"]["scores"]["scores"]
        if score["name"] == "harbor_reward.reward"
    ]
    assert score["count"] == len(scored)
    assert score["mean"] == pytest.approx(sum(scored) / len(scored))


def test_the_bundle_is_whole_and_read_by_python(shared: Program, mixed_oracle: Done) -> None:
    run = mixed_oracle.json("run-document-1")["run"]
    verified = shared("runs", "verify", run["id"], "--json")
    assert verified.status == 0
    assert verified.json("verify-document-1")["ok"] is True
    trials = read_trials(run["bundle_dir"])
    assert len(trials) == len(MIXED)
    done = shared("runs", "download", run["id"], "-o", "copy", "--json").json("download-document-1")
    assert len(read_trials(done["path"])) == len(MIXED)
    assert shared("runs", "verify", "copy/agent-eval-results").status == 0


def test_hello_world_prints_its_score_and_where_the_report_lies(program: Program) -> None:
    done = program("runs", "submit", "--harbor-dir", EXAMPLES / "hello-world", "--agent", "oracle")
    assert done.status == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Engine local, store ")
    assert any(line.startswith("Run run-") and " accepted: 1 tasks, " in line for line in lines)
    assert "Coverage: 1 of 1 scored, 0 failed, 0 missing" in lines
    report = lines[-1].removeprefix("Report: ")
    assert report.endswith("/agent-eval-results/report.html")
    assert report.startswith("/")
    assert "hello-world" in Path(report).read_text()


def test_the_rerun_line_runs_the_same_plan(program: Program) -> None:
    first = program("runs", "submit", "--harbor-dir", EXAMPLES / "hello-world", "--agent", "nop")
    (line,) = [line for line in first.stdout.splitlines() if line.startswith("Rerun these tasks: ")]
    import shlex

    again = program(*shlex.split(line.removeprefix("Rerun these tasks: "))[1:], "--json")
    document = again.json("run-document-1")
    assert again.status == 0
    plans = {run["plan_digest"] for run in program("runs", "list", "--json").json("runs-document-1")["runs"]}
    assert plans == {document["run"]["plan_digest"]}
