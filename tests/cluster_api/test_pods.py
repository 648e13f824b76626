from __future__ import annotations

from typing import Any

import pytest

from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.connect import connect
from argo_harbor.cluster.errors import ClusterError
from argo_harbor.cluster.pods import Pod, follow_log, list_pods, read_log
from tests.support.api_server import ApiServer

PODS = "/api/v1/namespaces/argo-harbor/pods"


def pod(**status: Any) -> Pod:
    return Pod({"metadata": {"name": "p"}, "status": {"phase": "Pending", **status}})


def waiting(
    reason: str, message: str = "", *, image: str = "i", kind: str = "containerStatuses"
) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {
        kind: [{"name": "main", "image": "other", "state": {}}, {"name": "c", "image": image, "state": state}]
    }


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (
            {
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "message": "0/1 nodes: Insufficient cpu."}
                ]
            },
            "0/1 nodes: Insufficient cpu.",
        ),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]},
            "SchedulingGated",
        ),
        (waiting("ImagePullBackOff", "401", image="r/x:1"), "ImagePullBackOff: r/x:1: 401"),
        (
            waiting("CreateContainerConfigError", 'secret "s" not found', kind="initContainerStatuses"),
            'CreateContainerConfigError: c: secret "s" not found',
        ),
        (waiting("PodInitializing"), ""),
        (waiting("ContainerCreating"), ""),
        ({"conditions": "odd", "containerStatuses": [1, {"state": 3}]}, ""),
        ({}, ""),
    ],
)
def test_why_a_pod_waits(status: dict[str, Any], words: str) -> None:
    assert pod(**status).waits_for() == words


def test_images_that_could_not_be_pulled() -> None:
    (found,) = pod(**waiting("ErrImagePull", "pull access denied: unauthorized", image="r/x:1")).pull_errors()
    assert (found.image, found.reason, found.unauthorized) == ("r/x:1", "ErrImagePull", True)
    (found,) = pod(**waiting("ImagePullBackOff", "not found")).pull_errors()
    assert not found.unauthorized
    assert pod(**waiting("CrashLoopBackOff")).pull_errors() == []


def test_a_pod_says_whose_it_is() -> None:
    found = Pod(
        {
            "metadata": {
                "name": "p",
                "uid": "u",
                "creationTimestamp": "t",
                "labels": {
                    "argo-harbor/task-index": "3",
                    "argo-harbor/attempt": "1",
                    "workflows.argoproj.io/workflow": "run-1",
                },
                "annotations": {"workflows.argoproj.io/node-id": "run-1-9"},
            }
        }
    )
    assert (found.name, found.uid, found.created, found.workflow) == ("p", "u", "t", "run-1")
    assert (found.index, found.attempt, found.node_id, found.phase) == (3, 1, "run-1-9", "")
    odd = Pod({"metadata": "x", "status": "y"})
    assert (odd.index, odd.attempt, odd.node_id, odd.waits_for()) == (None, None, "", "")


@pytest.fixture
def cluster(api: ApiServer) -> Cluster:
    return connect()


def test_pods_of_a_run_and_their_logs(api: ApiServer, cluster: Cluster) -> None:
    api.put(f"{PODS}/mine", {"metadata": {"labels": {"argo-harbor/run": "run-1"}}})
    api.put(f"{PODS}/other", {"metadata": {"labels": {"argo-harbor/run": "run-2"}}})
    assert [found.name for found in list_pods(cluster, "run-1")] == ["mine"]
    api.logs["mine"] = "one\ntwo\nhalf"
    assert read_log(cluster, "mine") == "one\ntwo\nhalf"
    assert list(follow_log(cluster, "mine")) == ["one", "two", "half"]
    with pytest.raises(ClusterError, match="no log"):
        read_log(cluster, "other")
