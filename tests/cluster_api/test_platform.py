from __future__ import annotations

import pytest

from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.connect import connect
from argo_harbor.cluster.platform import read_site
from argo_harbor.errors import PlatformError, Refused
from tests.support.api_server import ApiServer, Trouble

MAPS = "/api/v1/namespaces/argo-harbor/configmaps"


@pytest.fixture
def cluster(api: ApiServer) -> Cluster:
    return connect()


def install(api: ApiServer, platform: str) -> None:
    api.put(f"{MAPS}/argo-harbor-platform", {"data": {"platform.toml": platform}})
    profiles = {"closed.toml": 'name = "closed"', "mine.toml": "max_cpus = 3.0", "README": "no profile"}
    api.put(f"{MAPS}/argo-harbor-profiles", {"data": profiles})


def test_nothing_is_installed(cluster: Cluster) -> None:
    assert read_site(cluster) is None


def test_platform_and_profiles_of_the_namespace(api: ApiServer, cluster: Cluster) -> None:
    install(api, 'namespace = "elsewhere"\nregistry = "r.example/x"\ndefault_sandbox_profile = "mine"')
    site = read_site(cluster)
    assert site is not None
    assert (site.platform.namespace, site.platform.registry) == ("argo-harbor", "r.example/x")
    assert site.origin == "ConfigMap argo-harbor-platform in namespace argo-harbor of context double"
    assert [(listed.name, listed.default) for listed in site.profiles()] == [
        ("closed", False),
        ("mine", True),
    ]
    assert (site.profile().name, site.profile().max_cpus, site.profile("closed").max_cpus) == ("mine", 3, 16)
    with pytest.raises(Refused, match="no profile 'clsed'") as unknown:
        site.profile("clsed")
    assert "did you mean closed?" in unknown.value.hint


def test_broken_settings_name_the_configmap(api: ApiServer, cluster: Cluster) -> None:
    install(api, "registy = 1")
    with pytest.raises(Refused) as broken:
        read_site(cluster)
    assert broken.value.code == "invalid_platform"
    assert broken.value.items[0].file.startswith("ConfigMap argo-harbor-platform")


@pytest.mark.parametrize(("status", "reason"), [(403, "Forbidden"), (500, "InternalError")])
def test_settings_that_cannot_be_read_are_no_absence(
    api: ApiServer, cluster: Cluster, status: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    api.troubles = [Trouble("GET", "argo-harbor-platform", status, reason, times=10)]
    with pytest.raises(PlatformError) as error:
        read_site(cluster)
    assert error.value.code == "platform_unreachable"
