from __future__ import annotations

from typing import Any

import pytest

from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.connect import connect
from argo_harbor.cluster.errors import AlreadyExists
from argo_harbor.cluster.identity import user_name
from argo_harbor.cluster.workflows import (
    Workflow,
    create_workflow,
    find_workflow,
    list_parts,
    list_runs,
    stop_workflow,
)
from tests.support.api_server import ApiServer, Trouble

WORKFLOWS = "/apis/argoproj.io/v1alpha1/namespaces/argo-harbor/workflows"


@pytest.fixture
def cluster(api: ApiServer) -> Cluster:
    return connect()


def body(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"argo-harbor/plan": "p", **labels}}, "spec": {}}


def test_create_find_and_stop(api: ApiServer, cluster: Cluster) -> None:
    assert create_workflow(cluster, body("run-1"), dry_run=True).name == "run-1"
    assert find_workflow(cluster, "run-1") is None
    created = create_workflow(cluster, body("run-1"))
    assert created.uid
    assert created.created.endswith("Z")
    with pytest.raises(AlreadyExists):
        create_workflow(cluster, body("run-1"))
    stop_workflow(cluster, "run-1")
    found = find_workflow(cluster, "run-1")
    assert found is not None
    assert (found.shutdown, found.over, found.suspended) == ("Stop", False, False)


def test_runs_of_one_user_that_are_not_over_and_no_parts(api: ApiServer, cluster: Cluster) -> None:
    done = "workflows.argoproj.io/completed"
    api.put(f"{WORKFLOWS}/a", body("a", **{"argo-harbor/user": "me"}))
    api.put(f"{WORKFLOWS}/b", body("b", **{"argo-harbor/user": "me", done: "true"}))
    api.put(f"{WORKFLOWS}/c", body("c", **{"argo-harbor/user": "you"}))
    api.put(f"{WORKFLOWS}/foreign", {"metadata": {"labels": {}}})
    part = body("part-000-a")
    owner = {"kind": "Workflow", "uid": api.workflow("a")["metadata"]["uid"]}
    part["metadata"]["ownerReferences"] = [owner]
    api.put(f"{WORKFLOWS}/part-000-a", part)
    assert [run.name for run in list_runs(cluster)] == ["a", "b", "c"]
    assert [run.name for run in list_runs(cluster, user_label="me")] == ["a", "b"]
    assert [run.name for run in list_runs(cluster, user_label="me", active=True)] == ["a"]
    parent = find_workflow(cluster, "a")
    assert parent is not None
    assert [found.name for found in list_parts(cluster, parent)] == ["part-000-a"]


def test_more_runs_than_a_page_holds(api: ApiServer, cluster: Cluster) -> None:
    for number in range(501):
        api.put(f"{WORKFLOWS}/run-{number:03}", body(f"run-{number:03}"))
    assert len(list(list_runs(cluster))) == 501


def test_what_a_workflow_says_of_itself() -> None:
    found = Workflow(
        {
            "metadata": {"annotations": {"argo-harbor/plan": "d", "argo-harbor/user": "me"}},
            "spec": {"suspend": True},
            "status": {
                "phase": "Failed",
                "message": "stopped",
                "finishedAt": "t",
                "nodes": {"a": {"phase": "Failed"}},
            },
        }
    )
    assert (found.plan, found.user, found.phase, found.message) == ("d", "me", "Failed", "stopped")
    assert (found.over, found.suspended, found.finished, found.knows_nodes) == (True, True, "t", True)
    assert len(found.nodes) == 1
    odd = Workflow({"metadata": 1, "status": []})
    assert (odd.name, odd.phase, odd.plan, odd.nodes, odd.owners) == ("", "", "", (), ())
    assert not Workflow({"status": {"offloadNodeStatusVersion": "1"}}).knows_nodes


def test_who_asks(api: ApiServer, cluster: Cluster) -> None:
    assert user_name(cluster) == "somebody"
    api.troubles = [Trouble("POST", "/v1/selfsubjectreviews", 404, "NotFound", times=1)]
    assert user_name(cluster) == "somebody"
    api.troubles = [Trouble("POST", "selfsubjectreviews", 404, "NotFound", times=2)]
    assert user_name(cluster) == ""
