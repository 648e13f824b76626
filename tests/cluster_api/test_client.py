from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.connect import connect, connect_in_pod
from argo_harbor.cluster.errors import (
    AlreadyExists,
    ClusterError,
    Forbidden,
    NotFound,
    Rejected,
    Unreachable,
    of_status,
)
from argo_harbor.cluster.paths import cluster_wide, core, grouped, workflows
from argo_harbor.errors import PlatformError
from tests.support.api_server import ApiServer, Trouble

SECRET = core("argo-harbor", "secrets", "s")


@pytest.fixture
def cluster(api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr("time.sleep", lambda _: None)
    return connect()


def test_paths() -> None:
    assert core("ns", "pods", "p", "log") == "/api/v1/namespaces/ns/pods/p/log"
    assert workflows("ns", "a/b") == "/apis/argoproj.io/v1alpha1/namespaces/ns/workflows/a%2Fb"
    assert grouped("networking.k8s.io/v1", "ns", "networkpolicies") == (
        "/apis/networking.k8s.io/v1/namespaces/ns/networkpolicies"
    )
    assert cluster_wide("v1", "namespaces", "ns") == "/api/v1/namespaces/ns"
    assert cluster_wide("rbac/v1", "clusterroles") == "/apis/rbac/v1/clusterroles"


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (404, "NotFound", NotFound),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", ClusterError),
        (401, "Unauthorized", Forbidden),
        (403, "Forbidden", Forbidden),
        (422, "Invalid", Rejected),
        (429, "TooManyRequests", Unreachable),
        (503, "", Unreachable),
        (302, "", ClusterError),
    ],
)
def test_every_status_is_a_kind_of_no(status: int, reason: str, kind: type[ClusterError]) -> None:
    error = of_status(status, reason, "m")
    assert type(error) is kind
    assert (error.status, error.reason, error.message) == (status, reason, "m")


def test_objects_are_created_applied_patched_and_deleted(api: ApiServer, cluster: Cluster) -> None:
    body = {"metadata": {"name": "s"}, "data": {"a": "1"}}
    assert cluster.find(SECRET) is None
    cluster.apply(SECRET, body, dry_run=True)
    assert cluster.find(SECRET) is None
    cluster.apply(SECRET, body)
    cluster.apply(SECRET, {"metadata": {"name": "s"}, "data": {"b": "2"}})
    cluster.merge_patch(SECRET, {"data": {"a": None}})
    assert cluster.get(SECRET)["data"] == {"b": "2"}
    assert cluster.delete(SECRET)
    assert not cluster.delete(SECRET)


@pytest.mark.parametrize(
    "ask",
    [
        lambda cluster: cluster.get(SECRET),
        lambda cluster: cluster.apply(SECRET, {"metadata": {"name": "s"}}),
    ],
)
def test_reading_and_applying_outlive_a_fault(
    api: ApiServer, cluster: Cluster, ask: Callable[[Cluster], object]
) -> None:
    api.put(SECRET, {})
    api.troubles = [Trouble(method, "/secrets/", 503, times=2) for method in ("GET", "PATCH")]
    assert ask(cluster)
    api.troubles = [Trouble(method, "/secrets/", 503, times=9) for method in ("GET", "PATCH")]
    with pytest.raises(Unreachable, match="made to fail"):
        ask(cluster)


def test_creating_is_tried_once(api: ApiServer, cluster: Cluster) -> None:
    api.troubles = [Trouble("POST", "/secrets", 503)]
    with pytest.raises(Unreachable):
        cluster.create(core("argo-harbor", "secrets"), {"metadata": {"name": "s"}})
    assert [asked for asked in api.asked if asked[0] == "POST"] == [("POST", core("argo-harbor", "secrets"))]


def test_an_answer_that_is_no_json(api: ApiServer, cluster: Cluster) -> None:
    api.logs["p"] = "no json"
    with pytest.raises(Unreachable, match="no JSON"):
        cluster.get(core("argo-harbor", "pods", "p", "log"))


def test_a_kubeconfig_that_cannot_be_used(api: ApiServer) -> None:
    path = Path(os.environ["KUBECONFIG"])
    for text, words in (
        ("{", "cannot be used"),
        ("apiVersion: v1\nkind: Config\n", "cannot be used"),
    ):
        path.write_text(text)
        with pytest.raises(PlatformError, match=words) as error:
            connect()
        assert error.value.code == "platform_not_configured"


def test_a_process_without_an_account() -> None:
    with pytest.raises(PlatformError, match="no account of a cluster"):
        connect_in_pod("argo-harbor")
