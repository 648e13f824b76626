"""Our own time in each trial pod: every record has it, and this prints it beside what the cluster took."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from argo_harbor.workflow import names
from tests.e2e.cluster.assault import TASKS, Assault
from tests.e2e.cluster.remote import Remote
from tests.support.program import EXAMPLES

pytestmark = pytest.mark.cluster

MOST = 300.0
"""Seconds that no part of a trial's own time takes, however busy the machine is: more is a wrong clock."""
BEGUN = ("Running", "Succeeded")
GRADED = [task for task in TASKS if task != "out-of-memory"]


def between(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def parts(record: dict[str, Any], pod: dict[str, Any]) -> dict[str, float]:
    """Seconds of one trial; `pod` is the node of Argo's graph."""
    own, phases = record["overhead_seconds"], record["phases"]
    return {
        "pod to runner": between(pod["startedAt"], record["started_at"]),
        "before agent": own["before_agent"],
        "agent": between(phases["agent"]["started_at"], phases["agent"]["finished_at"]),
        "verifier": between(phases["verifier"]["started_at"], phases["verifier"]["finished_at"]),
        "after verifier": own["after_verifier"],
        "record to pod's end": between(record["finished_at"], pod["finishedAt"]),
    }


def printed(remote: Remote, run: str) -> str:
    """What the pod of a run's only trial prints until it ends."""

    def name() -> str:
        for pod in remote.pods(run):
            if names.ATTEMPT_LABEL in pod["metadata"]["labels"] and pod["status"]["phase"] in BEGUN:
                return str(pod["metadata"]["name"])
        return ""

    pod = remote.until(name, what=f"the trial of {run} to begin", seconds=300)
    place = ("--namespace", remote.cluster.namespace, "--container", "main", "--follow")
    return remote.cluster.kubectl("logs", pod, *place, seconds=300)


def test_every_record_says_how_much_of_its_time_was_ours(attacks: Assault) -> None:
    for task in GRADED:
        own = attacks.record(task)["overhead_seconds"]
        assert set(own) == {"before_agent", "after_verifier"}
        assert all(0 < seconds < MOST for seconds in own.values())


def test_a_trial_alone_prints_its_times(
    remote: Remote, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = remote.submit(EXAMPLES / "hello-world")
    log = printed(remote, run)
    remote.ended(run)
    (record,) = remote.records(run, tmp_path, "hello-world")
    nodes = remote.workflow(run)["status"]["nodes"].values()
    (pod,) = [node for node in nodes if node["type"] == "Pod" and node["displayName"].startswith("hello")]
    seconds = parts(record, pod)
    with capsys.disabled():
        print("\n" + "\n".join(f"  {name:<20} {spent:6.2f} s" for name, spent in seconds.items()))
    assert all(-1.5 < spent < MOST for spent in seconds.values()), "Argo's times are whole seconds"
    assert "own time: before agent" in log
