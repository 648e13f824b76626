"""The merge pod: waits, asks the cluster why, writes the bundle, and repeats itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.connect import connect
from argo_harbor.errors import PlatformError
from argo_harbor.model.run_state import RunState
from argo_harbor.model.states import RunPhase
from argo_harbor.runner import merge as module
from argo_harbor.runner.merge import main, merge_in_pod
from argo_harbor.store import layout
from argo_harbor.store.directory import DirectoryStore
from tests.support.api_server import ApiServer, Trouble
from tests.support.pods import make_pod, store_root
from tests.support.records import Run, make_run

WORKFLOW = "/apis/argoproj.io/v1alpha1/namespaces/argo-harbor/workflows"
PODS = "/api/v1/namespaces/argo-harbor/pods"


def connected(namespace: str) -> Cluster:
    return connect(namespace=namespace)


def merged(run: Run, folder: Path, **more: Any) -> RunState:
    more.setdefault("connect", connected)
    more.setdefault("sleep", lambda _: None)
    assert merge_in_pod(run.plan, run.run_id, make_pod(folder), **more) == 0
    return RunState.from_json(run.store.get(layout.state(run.run_id)))


def missing(run: Run) -> dict[str, tuple[str, str]]:
    rows = (run.bundle / "tasks.jsonl").read_text().splitlines()
    found = [json.loads(row) for row in rows]
    return {
        row["id"]: (row["metadata"]["missing"][0]["code"], row["metadata"]["missing"][0]["cause"])
        for row in found
        if row["metadata"]["missing"]
    }


def put_workflow(api: ApiServer, run: Run, *, nodes: dict[str, Any] | None = None, **spec: Any) -> None:
    api.put(
        f"{WORKFLOW}/{run.run_id}",
        {"metadata": {"labels": {}}, "spec": spec, "status": {"phase": "Running", "nodes": nodes or {}}},
    )


def test_causes_of_the_cluster_reach_the_bundle(
    api: ApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(store_root(tmp_path), ["acme/good", "acme/evicted", "acme/never"])
    run.add(0)
    node = {
        "id": "n",
        "type": "Pod",
        "phase": "Failed",
        "message": "The node was low on resource: memory",
        "templateName": "trial",
        "inputs": {"parameters": [{"name": "index", "value": "1"}, {"name": "attempt", "value": "0"}]},
    }
    done = {"id": run.run_id, "name": run.run_id, "type": "DAG", "phase": "Failed"}
    put_workflow(api, run, nodes={"n": node, run.run_id: done})
    assert merged(run, tmp_path).phase is RunPhase.COMPLETED
    assert missing(run)["acme/evicted"] == (
        "not_started",
        "its pod ended early: The node was low on resource: memory",
    )
    assert missing(run)["acme/never"][0] == "node_collision_possible"
    said = capsys.readouterr().out
    assert "3 trials planned, 1 scored, 0 failed, 2 missing" in said
    assert "harbor_reward.reward: 1.0 (of 1)" in said
    assert "missing acme/evicted: not_started" in said
    assert f"{layout.bundle(run.run_id)}report.html" in said


def test_a_stopped_run_is_cancelled(api: ApiServer, tmp_path: Path) -> None:
    run = make_run(store_root(tmp_path), 2)
    run.add(0)
    put_workflow(api, run, shutdown="Stop")
    assert merged(run, tmp_path).phase is RunPhase.CANCELLED
    assert missing(run)["acme/task-001"] == ("cancelled", "the run was cancelled before it started")


def test_pods_that_still_upload_are_waited_for(api: ApiServer, tmp_path: Path) -> None:
    run = make_run(store_root(tmp_path), 1)
    uid = run.start(0)
    put_workflow(api, run, shutdown="Stop")
    labels = {"argo-harbor/run": run.run_id}
    for name, each in (("trial", uid), ("self", make_pod(tmp_path).uid)):
        api.put(
            f"{PODS}/{name}", {"metadata": {"uid": each, "labels": labels}, "status": {"phase": "Running"}}
        )
    assert merged(run, tmp_path, sleep=lambda _: run.add(0, uid=uid)).phase is RunPhase.COMPLETED


def test_without_an_account_causes_are_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def nobody(namespace: str) -> Cluster:
        raise PlatformError("platform_not_configured", "no token")

    run = make_run(store_root(tmp_path), 1)
    assert merged(run, tmp_path, connect=nobody).phase is RunPhase.FAILED
    assert "the API server could not be asked why" in missing(run)["acme/task-000"][1]
    assert "causes are unknown" in capsys.readouterr().out


def test_a_cluster_that_tells_nothing_keeps_no_bundle_back(api: ApiServer, tmp_path: Path) -> None:
    run = make_run(store_root(tmp_path), 1)
    run.start(0)
    api.troubles.append(Trouble("GET", "/argo-harbor/", 403, "Forbidden", "not you", times=99))
    assert merged(run, tmp_path, patience=0.0).phase is RunPhase.FAILED
    assert missing(run)["acme/task-000"][0] == "trial_lost"


def test_a_store_that_falters_is_tried_three_times(
    api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(store_root(tmp_path), 1)
    run.add(0)
    put_workflow(api, run)
    faults = [PlatformError("store_unreadable", "away"), PlatformError("store_write_failed", "full")]
    pauses: list[float] = []
    real = module.merge

    def faltering(*args: Any, **named: Any) -> Any:
        if faults:
            raise faults.pop()
        return real(*args, **named)

    monkeypatch.setattr(module, "merge", faltering)
    assert merged(run, tmp_path, sleep=pauses.append).phase is RunPhase.COMPLETED
    assert pauses == list(module.PAUSES)


def test_a_third_fault_is_the_last(api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(store_root(tmp_path), 1)

    def broken(*args: Any, **named: Any) -> Any:
        raise PlatformError("store_write_failed", "full")

    monkeypatch.setattr(module, "merge", broken)
    with pytest.raises(PlatformError, match="full"):
        merge_in_pod(run.plan, run.run_id, make_pod(tmp_path), connect=connected, sleep=lambda _: None)


def test_the_run_of_another_workflow_is_left_alone(tmp_path: Path) -> None:
    store = DirectoryStore(store_root(tmp_path))
    store.put(layout.workflow_mark("run-1", "00000000-older"), b"")
    with pytest.raises(PlatformError) as error:
        merge_in_pod("ab" * 32, "run-1", make_pod(tmp_path), sleep=lambda _: pytest.fail("no second try"))
    assert error.value.code == "run_id_reused"


def test_outside_of_a_pod_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--plan", "ab", "--run", "run-1"]) == 1
    assert "error[platform_not_configured]" in capsys.readouterr().err
