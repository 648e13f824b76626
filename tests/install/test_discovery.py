"""What a cluster tells about its addresses, and the platform file that comes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from argo_harbor.cluster.client import Cluster
from argo_harbor.errors import PlatformError
from argo_harbor.install.discovery import discover, skeleton
from argo_harbor.settings.platform import read_platform
from tests.support.whole_api import WholeApi

_SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"


@pytest.fixture
def told(api: WholeApi) -> WholeApi:
    api.hold(
        _SLICE,
        metadata={"labels": {"kubernetes.io/service-name": "kubernetes"}},
        ports=[{"port": 6443}],
        endpoints=[{"addresses": ["192.0.2.10", "not an address"]}, {"addresses": ["2001:db8::1"]}],
    )
    api.hold("/apis/networking.k8s.io/v1/servicecidrs/kubernetes", spec={"cidrs": ["10.96.0.0/12"]})
    for number in (0, 1, 2):
        api.hold(
            f"/api/v1/nodes/n{number}",
            spec={"podCIDRs": [f"10.244.{number}.0/24"]},
            status={
                "addresses": [
                    {"type": "InternalIP", "address": f"192.0.2.2{number}"},
                    {"type": "Hostname", "address": f"n{number}"},
                ]
            },
        )
    api.hold(
        "/api/v1/namespaces/kube-system/services/kube-dns",
        metadata={"labels": {"k8s-app": "kube-dns"}},
        spec={"clusterIPs": ["10.96.0.10", "None"]},
    )
    return api


def test_all_of_it(told: WholeApi, connection: Cluster) -> None:
    found = discover(connection)
    assert found.api_server.values == ("192.0.2.10:6443", "[2001:db8::1]:6443")
    assert found.service_cidrs.values == ("10.96.0.0/12",)
    assert found.pod_cidrs.values == ("10.244.0.0/22",)
    assert found.node_cidrs.values == ("192.0.2.20/31", "192.0.2.22/32")
    assert found.resolvers.values == ("10.96.0.10",)


def test_the_skeleton_is_a_platform_file(told: WholeApi, connection: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "platform.toml"
    file.write_text(skeleton(discover(connection), "evals"))
    platform = read_platform(file)
    assert platform.namespace == "evals"
    assert platform.network.api_server == ("192.0.2.10:6443", "[2001:db8::1]:6443")
    assert platform.network.pod_cidrs == ("10.244.0.0/22",)


def test_what_may_not_be_seen_is_left_to_fill_in(told: WholeApi, connection: Cluster, tmp_path: Path) -> None:
    told.refusals["GET /api/v1/nodes"] = (403, "forbidden")
    text = skeleton(discover(connection), "evals")
    assert "# pod_cidrs = []" in text
    assert "not allowed to this user" in text
    file = tmp_path / "platform.toml"
    file.write_text(text)
    assert read_platform(file).network.service_cidrs == ("10.96.0.0/12",)


def test_an_older_cluster_tells_its_service_range_when_asked_for_a_wrong_address(
    told: WholeApi, connection: Cluster
) -> None:
    told.refusals["GET /apis/networking.k8s.io/v1/servicecidrs"] = (404, "no such kind")
    told.refusals["POST /api/v1/namespaces/default/services"] = (
        422,
        "spec.clusterIPs: failed to allocate IP 192.0.2.1: the provided IP (192.0.2.1) is not in the valid "
        "range. The range of valid IPs is 172.20.0.0/16",
    )
    assert discover(connection).service_cidrs.values == ("172.20.0.0/16",)
    assert ("POST /api/v1/namespaces/default/services", {"dryRun": "All"}) in told.queries


def test_nodes_that_do_not_say_where_pods_get_addresses(api: WholeApi, connection: Cluster) -> None:
    api.hold("/api/v1/nodes/n", spec={}, status={})
    found = discover(connection)
    assert found.pod_cidrs.values == ()
    assert "CNI" in found.pod_cidrs.comment


def test_hostile_values_do_not_get_into_the_file(api: WholeApi, connection: Cluster) -> None:
    api.hold("/api/v1/nodes/n", spec={"podCIDRs": ['"]\nregistry = "evil.example"', "10.1.0.0/24"]})
    text = skeleton(discover(connection), "evals")
    assert "evil" not in text
    assert 'pod_cidrs = ["10.1.0.0/24"]' in text


def test_two_families(api: WholeApi, connection: Cluster) -> None:
    api.hold("/api/v1/nodes/a", spec={"podCIDRs": ["10.1.0.0/24", "fd00:1::/64"]})
    api.hold("/api/v1/nodes/b", spec={"podCIDRs": ["10.1.1.0/24", "fd00:1:0:1::/64"]})
    assert discover(connection).pod_cidrs.values == ("10.1.0.0/23", "fd00:1::/63")


@pytest.mark.parametrize("path", ["/apis/discovery.k8s.io", "/apis/networking.k8s.io"])
def test_a_cluster_that_does_not_answer(
    told: WholeApi, connection: Cluster, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argo_harbor.cluster.client.time.sleep", lambda seconds: None)
    told.refusals[f"GET {path}"] = (503, "busy")
    with pytest.raises(PlatformError) as caught:
        discover(connection)
    assert caught.value.code == "platform_unreachable"
