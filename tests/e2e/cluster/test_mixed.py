"""The mixed example suite on the cluster: the same results as on one machine, under the run's cap."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from argo_harbor import read_trials
from tests.e2e.cluster.cap import Sampled, sampling
from tests.e2e.cluster.remote import Remote
from tests.support.program import EXAMPLES, Done, Program

pytestmark = pytest.mark.cluster

CAP = 5
# The suite asks for a core a task, and the tests' node may have two.
FLAGS = ("--cpus", "0.1", "-O", f"execution.max_concurrent_task_jobs={CAP}")


@dataclass(frozen=True)
class Ran:
    run_id: str
    sampled: Sampled
    status: dict[str, Any]


@pytest.fixture(scope="module")
def ran(remote: Remote, monkeypatch_module: pytest.MonkeyPatch) -> Ran:
    for name, value in remote.cluster.environment.items():
        monkeypatch_module.setenv(name, value)
    run_id = remote.submit(EXAMPLES / "mixed", *FLAGS)
    with sampling(remote, run_id) as sampled:
        status = remote.ended(run_id, timeout=1200)
    return Ran(run_id, sampled, status)


@pytest.fixture(scope="module")
def monkeypatch_module() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def outcomes(tasks: list[dict[str, Any]]) -> dict[str, object]:
    return {task["name"]: [outcome(trial) for trial in task["trials"]] for task in tasks}


def outcome(trial: dict[str, Any]) -> tuple[object, ...]:
    return trial["outcome"], (trial["error"] or {}).get("code"), trial["rewards"]


def test_every_task_comes_to_what_it_does_on_one_machine(
    ran: Ran, remote: Remote, shared: Program, mixed_oracle: Done
) -> None:
    here = mixed_oracle.json("run-document-1")["run"]["id"]
    local = shared("runs", "tasks", here, "--json").json("tasks-document-1")["tasks"]
    there = remote("runs", "tasks", ran.run_id, "--json").json("tasks-document-1")["tasks"]
    assert outcomes(there) == outcomes(local)
    assert {task["phase"] for task in there} == {"succeeded"}


def test_the_run_is_completed_and_its_workflow_succeeded(ran: Ran, remote: Remote) -> None:
    assert ran.status["run"]["phase"] == "completed"
    assert ran.status["run"]["engine"] == "argo"
    assert remote.workflow(ran.run_id)["status"]["phase"] == "Succeeded"


def test_the_cap_was_never_exceeded(ran: Ran) -> None:
    assert ran.sampled.looks > 20
    assert 1 < ran.sampled.most <= CAP


def test_the_bundle_is_downloaded_whole(ran: Ran, remote: Remote, tmp_path: Path) -> None:
    done = remote("runs", "download", ran.run_id, "-o", tmp_path / "copy", "--json")
    path = Path(done.json("download-document-1")["path"])
    assert len(read_trials(path)) == 19
    assert remote("runs", "verify", path).status == 0
    assert remote("runs", "verify", ran.run_id).status == 0
    assert (path / "report.html").stat().st_size > 1000


def test_a_second_run_builds_nothing(ran: Ran, remote: Remote) -> None:
    again = remote.run(EXAMPLES / "mixed", *FLAGS, "--tasks", "reward-txt,healthcheck")
    entries = [node["templateName"] for node in remote.workflow(again)["status"]["nodes"].values()]
    assert any(name.startswith("trial") for name in entries)
    assert "build" not in entries
    assert remote.trial(again, "reward-txt")["rewards"] == remote.trial(ran.run_id, "reward-txt")["rewards"]
