"""Removing takes away what an install made, and nothing of anybody else."""

from __future__ import annotations

from typing import Any

import pytest

from argo_harbor.cluster.client import Cluster
from argo_harbor.errors import PlatformError
from argo_harbor.install.changes import apply, own_namespace
from argo_harbor.install.manifests import Settings, manifests
from argo_harbor.install.removal import plan_removal, remove
from argo_harbor.model.platform import Platform, StoreSettings
from tests.support.whole_api import WholeApi

SETTINGS = Settings(
    Platform(namespace="evals", store=StoreSettings(endpoint="http://store.example:9000")), "", {}
)
NAMESPACE = "/api/v1/namespaces/evals"


@pytest.fixture
def installed(api: WholeApi, connection: Cluster) -> WholeApi:
    apply(connection, manifests(SETTINGS, own_namespace=own_namespace(connection, "evals")), dry_run=False)
    api.hold(f"{NAMESPACE}/configmaps/kube-root-ca.crt")
    api.hold(f"{NAMESPACE}/serviceaccounts/default")
    api.hold(f"{NAMESPACE}/events/passing")
    return api


def test_everything_goes_with_a_namespace_of_our_own(installed: WholeApi, connection: Cluster) -> None:
    removal = plan_removal(connection, "evals")
    assert removal.namespace
    assert not removal.kept_because
    kinds = [item.kind for item in removal.objects]
    assert kinds.index("RoleBinding") < kinds.index("Role") < kinds.index("ServiceAccount")
    remove(connection, "evals", removal)
    assert NAMESPACE not in installed.objects
    again = plan_removal(connection, "evals")
    assert (again.objects, again.namespace, again.kept_because) == ((), False, "")


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/apis/argoproj.io/v1alpha1/namespaces/evals/workflows/run-1", {}),
        (f"{NAMESPACE}/configmaps/somebodys", {}),
        (
            f"{NAMESPACE}/secrets/token",
            {"metadata": {"annotations": {"kubernetes.io/service-account.name": "somebody"}}},
        ),
    ],
)
def test_a_namespace_with_anything_else_stays(
    installed: WholeApi, connection: Cluster, path: str, content: dict[str, Any]
) -> None:
    installed.hold(path, **content)
    removal = plan_removal(connection, "evals")
    assert not removal.namespace
    plural, name = path.split("/")[-2:]
    assert removal.kept_because == f"it holds {plural}/{name}"
    remove(connection, "evals", removal)
    assert path in installed.objects
    assert installed.names(f"{NAMESPACE}/serviceaccounts") == {"default"}


def test_a_token_of_the_default_account_is_nobodys(installed: WholeApi, connection: Cluster) -> None:
    installed.hold(
        f"{NAMESPACE}/secrets/default-token",
        metadata={"annotations": {"kubernetes.io/service-account.name": "default"}},
    )
    assert plan_removal(connection, "evals").namespace


def test_a_namespace_that_was_there_before_stays(api: WholeApi, connection: Cluster) -> None:
    api.hold(NAMESPACE)
    apply(connection, manifests(SETTINGS, own_namespace=own_namespace(connection, "evals")), dry_run=False)
    removal = plan_removal(connection, "evals")
    assert removal.objects
    assert not removal.namespace
    assert "before" in removal.kept_because
    remove(connection, "evals", removal)
    assert [path for path in api.objects if path.startswith(NAMESPACE)] == [NAMESPACE]


def test_many_foreign_things_are_counted(installed: WholeApi, connection: Cluster) -> None:
    for number in range(8):
        installed.hold(f"{NAMESPACE}/pods/p{number}")
    assert plan_removal(connection, "evals").kept_because.endswith("and 3 more")


def test_what_is_gone_meanwhile_is_no_error(installed: WholeApi, connection: Cluster) -> None:
    removal = plan_removal(connection, "evals")
    installed.objects.clear()
    remove(connection, "evals", removal)


@pytest.mark.parametrize("what", ["GET /apis/rbac", "DELETE /apis/rbac"])
def test_without_the_rights(installed: WholeApi, connection: Cluster, what: str) -> None:
    installed.refusals[what] = (403, "forbidden")
    with pytest.raises(PlatformError) as caught:
        remove(connection, "evals", plan_removal(connection, "evals"))
    assert caught.value.code == "cluster_refused"
