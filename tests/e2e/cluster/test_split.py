"""Runs too large for one Workflow, and the largest Workflow that is still one."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.connect import connect
from argo_harbor.cluster.paths import workflows
from argo_harbor.workflow.limits import MAX_WORKFLOW_BYTES, size
from tests.e2e.cluster.cap import Sampled, sampling
from tests.e2e.cluster.remote import Remote, runs_made
from tests.engines.suite import write_task
from tests.support.large import SUITES, compiled
from tests.support.program import ROOT

pytestmark = pytest.mark.cluster

TASKS = 10
CAP = 2
LIMIT = 20_000
SMALL = "[environment]\ncpus = 0.1\nmemory_mb = 128\nstorage_mb = 256\n"


@dataclass(frozen=True)
class Split:
    run_id: str
    sampled: Sampled
    status: dict[str, Any]


@pytest.fixture
def user_environment(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in remote.cluster.environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "large"
    for number in range(TASKS):
        write_task(folder, f"task-{number}", toml=SMALL)
    return folder


def submitted(remote: Remote, suite: Path) -> str:
    command = [sys.executable, "-m", "tests.e2e.cluster.small_limit", str(LIMIT), "runs", "submit"]
    flags = ["--harbor-dir", suite, "--agent", "oracle", "-O", f"execution.max_concurrent_task_jobs={CAP}"]
    done = subprocess.run(
        [*command, *map(str, flags), "--json"],
        cwd=ROOT,
        env=remote.program.environment(remote.cluster.environment),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    run_id: str = json.loads(done.stdout)["run"]["id"]
    return run_id


@pytest.mark.usefixtures("user_environment")
def test_a_split_run_has_one_merge_and_keeps_its_cap(remote: Remote, suite: Path) -> None:
    run_id = submitted(remote, suite)
    with sampling(remote, run_id) as sampled:
        status = remote.ended(run_id, timeout=1200)
    assert status["run"]["phase"] == "completed"
    tasks = remote.tasks(run_id)
    assert len(tasks) == TASKS
    assert {task["trials"][0]["outcome"] for task in tasks.values()} == {"scored"}
    assert 1 <= sampled.most <= CAP
    parent = remote.workflow(run_id)
    steps = [node["templateName"] for node in parent["status"]["nodes"].values() if node["type"] == "Pod"]
    assert steps.count("shard") > 1
    assert steps.count("merge") == 1
    remote.delete(run_id)
    assert [name for name in runs_made(remote) if name.startswith(run_id)] == []


@pytest.mark.usefixtures("user_environment")
def test_the_largest_workflow_is_taken_by_api_server_and_controller(remote: Remote) -> None:
    api = connect(remote.cluster.context, remote.cluster.namespace)
    whole = [compiled(suite)[0] for suite in SUITES if len(compiled(suite)) == 1]
    largest = copy.deepcopy(max(whole, key=lambda each: size(each).total))
    assert size(largest).total > 0.5 * MAX_WORKFLOW_BYTES
    largest["metadata"] = {**largest["metadata"], "namespace": remote.cluster.namespace}
    largest["spec"]["suspend"] = True
    made = api.create(workflows(remote.cluster.namespace), largest)
    name = made["metadata"]["name"]
    try:
        status = remote.until(lambda: phase(api, remote, name), what=f"the controller to look at {name}")
        assert (status["phase"], status.get("message", "")) == ("Running", "")
    finally:
        remote.delete(name)


def phase(api: Cluster, remote: Remote, name: str) -> dict[str, Any] | None:
    status = api.get(workflows(remote.cluster.namespace, name)).get("status") or {}
    return status if status.get("phase") else None
