"""Runs that do not get to their end: stopped in every way, out of time, robbed of a pod and of Argo's
controller. What was done is never lost, and what was not says why."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import argo as controller
from tests.e2e.cluster.argo import argo
from tests.e2e.cluster.remote import Remote
from tests.e2e.cluster.suites import ready_task

pytestmark = pytest.mark.cluster

CAP = 2
FOR_EVER = "echo hard at work; sleep 800"


@dataclass(frozen=True)
class Ends:
    """Ids of runs of one suite, all under way at once, by how they were ended."""

    cancelled: str
    stopped: str
    terminated: str
    expired: str
    disturbed: str
    statuses: Mapping[str, dict[str, Any]]
    """`runs status` of each at its end."""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Under a cap of two: one task that is done, two that never are, and one that never starts."""
    folder = tmp_path_factory.mktemp("stops") / "stops"
    ready_task(folder, "a-quick", solve="echo done at once")
    ready_task(folder, "b-working", solve=FOR_EVER)
    ready_task(folder, "c-working", solve=FOR_EVER)
    ready_task(folder, "d-waiting")
    return folder


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A task that takes half a minute, and says how often it was begun."""
    folder = tmp_path_factory.mktemp("patient") / "patient"
    ready_task(folder, "patient", solve="echo begun; sleep 30; echo finished")
    return folder


@pytest.fixture(scope="module")
def ends(remote: Remote, suite: Path, patient: Path) -> Iterator[Ends]:
    flags = ("-O", f"execution.max_concurrent_task_jobs={CAP}")
    stopping = [remote.submit(suite, *flags) for _ in range(3)]
    expired = remote.submit(suite, *flags, "-O", "timeout_seconds=45")
    disturbed = remote.submit(patient)
    rob(remote, disturbed)
    remote.until(
        lambda: all(both_work(remote, run_id) for run_id in stopping), what="two agents of each run to work"
    )
    controller.kill_and_start(remote.cluster.state)
    cancelled, stopped, terminated = stopping
    assert remote("runs", "cancel", cancelled).status == 0
    argo(remote.cluster, "stop", stopped)
    argo(remote.cluster, "terminate", terminated)
    runs = (*stopping, expired, disturbed)
    statuses = {run_id: remote.ended(run_id, timeout=300) for run_id in runs}
    assert remote("runs", "merge", terminated).status == 0
    yield Ends(cancelled, stopped, terminated, expired, disturbed, statuses)
    for run_id in runs:
        remote.delete(run_id)


def both_work(remote: Remote, run_id: str) -> bool:
    tasks = remote.tasks(run_id)
    assert tasks["d-waiting"]["phase"] != "succeeded"
    done = tasks["a-quick"]["phase"] == "succeeded"
    return done and all(tasks[name]["detail"] == "agent" for name in ("b-working", "c-working"))


def rob(remote: Remote, run_id: str) -> None:
    """Take away the pod of the run's only trial while its agent works."""
    remote.until(lambda: remote.tasks(run_id)["patient"]["detail"] == "agent", what="the agent to work")
    (pod,) = (
        each["metadata"]["name"]
        for each in remote.pods(run_id)
        if "argo-harbor/attempt" in each["metadata"]["labels"]
    )
    remote.cluster.kubectl(
        "delete", "pod", pod, "--namespace", remote.cluster.namespace, "--grace-period=0", "--force"
    )


def bundle(remote: Remote, run_id: str, folder: Path) -> Path:
    done = remote("runs", "download", run_id, "-o", folder, "--json")
    assert done.status == 0, done.stderr
    return Path(done.json("download-document-1")["path"])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def missing(folder: Path) -> dict[str, dict[str, Any]]:
    """The one attempt of each task that the bundle has no result of."""
    facts = json.loads((folder / "metadata.json").read_text())["target"]["config"]["argo_harbor"]
    return {task["task"].rpartition("/")[2]: task["attempts"][0] for task in facts["missing"]}


@pytest.mark.parametrize("how", ["cancelled", "stopped", "terminated", "expired"])
def test_what_was_done_is_in_the_bundle_and_the_rest_has_a_cause(
    ends: Ends, remote: Remote, how: str, tmp_path: Path
) -> None:
    run_id = getattr(ends, how)
    word = "expired" if how == "expired" else "cancelled"
    status = remote("runs", "status", run_id, "--json").json("run-document-1")["run"]
    assert (status["phase"], status["result_state"]) == (word, "ready")
    phases = {name: task["phase"] for name, task in remote.tasks(run_id).items()}
    assert phases == {"a-quick": "succeeded", "b-working": word, "c-working": word, "d-waiting": word}
    folder = bundle(remote, run_id, tmp_path / "bundle")
    (row,) = lines(folder / "trials.jsonl")
    assert row["metadata"]["argo_harbor"]["outcome"] == "scored"
    left_out = missing(folder)
    assert {name: (each["code"], each["tries"]) for name, each in left_out.items()} == {
        "b-working": (word, 1),
        "c-working": (word, 1),
        # Nobody but a runner that begins can say that the time is over.
        "d-waiting": (word, int(how == "expired")),
    }
    assert all(each["cause"] for each in left_out.values())


@pytest.mark.parametrize("how", ["cancelled", "stopped", "terminated", "expired"])
def test_what_was_running_is_recorded_with_its_logs(
    ends: Ends, remote: Remote, how: str, tmp_path: Path
) -> None:
    run_id = getattr(ends, how)
    (record,) = remote.records(run_id, tmp_path, "b-working")
    assert record["outcome"] == ("expired" if how == "expired" else "cancelled")
    assert not record["final"]
    texts = [path.read_text(errors="replace") for path in (tmp_path / run_id).rglob("*") if path.is_file()]
    assert any("hard at work" in text for text in texts)


def test_a_try_that_is_lost_is_repeated_and_counted_once(ends: Ends, remote: Remote, tmp_path: Path) -> None:
    status = ends.statuses[ends.disturbed]["run"]
    assert (status["phase"], status["result_state"]) == ("completed", "ready")
    trial = remote.trial(ends.disturbed, "patient")
    assert (trial["try"], trial["rewards"]) == (1, {"reward": 1.0})
    folder = bundle(remote, ends.disturbed, tmp_path / "bundle")
    (row,) = lines(folder / "trials.jsonl")
    assert row["metadata"]["argo_harbor"]["tries"] == 2
    assert len(lines(folder / "scores.jsonl")) == 1


def test_a_merge_may_be_repeated(ends: Ends, remote: Remote, tmp_path: Path) -> None:
    before = bundle(remote, ends.stopped, tmp_path / "before")
    assert remote("runs", "merge", ends.stopped).status == 0
    after = bundle(remote, ends.stopped, tmp_path / "after")
    files = sorted(path.relative_to(before) for path in before.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(after) for path in after.rglob("*") if path.is_file())
    assert [str(name) for name in files if (before / name).read_bytes() != (after / name).read_bytes()] == []
