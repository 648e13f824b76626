"""Applying brings a cluster there, as often as one likes, and says what it changed."""

from __future__ import annotations

import pytest

from argo_harbor.cluster.client import Cluster
from argo_harbor.errors import PlatformError
from argo_harbor.install.changes import apply, own_namespace, unified
from argo_harbor.install.manifests import Settings, StoreCredentials, manifests
from argo_harbor.install.rights import ACCOUNT_RULES
from argo_harbor.model.platform import Platform, StoreSettings
from argo_harbor.workflow import names
from tests.support.whole_api import WholeApi

PLATFORM = Platform(namespace="evals", store=StoreSettings(endpoint="http://store.example:9000"))
SETTINGS = Settings(PLATFORM, "first = 1\nsecond = 2\n", {"closed": 'name = "closed"\n'})
NAMESPACE = "/api/v1/namespaces/evals"


def objects(settings: Settings = SETTINGS, **options: bool) -> list[dict]:
    return manifests(settings, **options)


def test_a_second_time_changes_nothing(api: WholeApi, connection: Cluster) -> None:
    first = apply(connection, objects(), dry_run=False)
    assert {change.what for change in first} == {"create"}
    assert f"{NAMESPACE}/serviceaccounts/{names.TRIAL_ACCOUNT}" in api.objects
    second = apply(connection, objects(), dry_run=False)
    assert {change.what for change in second} == {"unchanged"}
    assert all(not unified(change) for change in second)


def test_a_dry_run_changes_nothing_even_where_there_is_no_namespace(
    api: WholeApi, connection: Cluster
) -> None:
    changes = apply(connection, objects(), dry_run=True)
    assert {change.what for change in changes} == {"create"}
    assert api.objects == {}


def test_a_diff_shows_the_lines_of_a_file_that_change(api: WholeApi, connection: Cluster) -> None:
    apply(connection, objects(), dry_run=False)
    other = SETTINGS._replace(platform_text="first = 1\nsecond = 3\n")
    changes = apply(connection, objects(other), dry_run=True)
    (changed,) = [change for change in changes if change.what == "update"]
    lines = unified(changed).splitlines()
    assert [line.strip() for line in lines if line.startswith(("+ ", "- "))] == [
        "-    second = 2",
        "+    second = 3",
    ]
    assert lines[0] == f"--- ConfigMap/{names.PLATFORM_CONFIGMAP} (cluster)"


def test_values_of_secrets_are_in_no_diff(api: WholeApi, connection: Cluster) -> None:
    def with_key(key: str) -> list[dict]:
        return objects(SETTINGS._replace(credentials=StoreCredentials("access", key)))

    made = apply(connection, with_key("c2VjcmV0"), dry_run=False)
    changed = apply(connection, with_key("b3RoZXI"), dry_run=True)
    text = "".join(map(unified, made)) + "".join(map(unified, changed)) + repr(made) + repr(changed)
    assert "(hidden)" in text
    assert "secret_key: (hidden, changed)" in text
    for value in ("YWNjZXNz", "YzJWamNtVjA", "YjNSb1pYSQ", "dG9rZW4"):
        assert value not in text


def test_every_refusal_is_told_and_the_rest_is_applied(api: WholeApi, connection: Cluster) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/evals/roles"
    api.refusals[f"PATCH {roles}"] = (403, "you may not grant that")
    with pytest.raises(PlatformError) as caught:
        apply(connection, objects(), dry_run=False)
    assert caught.value.code == "cluster_refused"
    assert {item.file for item in caught.value.items} == {
        f"Role/{name}" for name in (*filter(ACCOUNT_RULES.get, ACCOUNT_RULES), names.USER_ROLE)
    }
    assert "admin" in caught.value.hint
    assert f"{NAMESPACE}/configmaps/{names.PLATFORM_CONFIGMAP}" in api.objects


def test_a_server_that_fails_is_asked_no_further(
    api: WholeApi, connection: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argo_harbor.cluster.client.time.sleep", lambda seconds: None)
    api.refusals["PATCH /api/v1"] = (500, "etcd is gone")
    with pytest.raises(PlatformError, match="etcd is gone") as caught:
        apply(connection, objects(), dry_run=False)
    assert caught.value.code == "platform_unreachable"
    assert len(caught.value.items) == 1


@pytest.mark.parametrize(
    ("status", "message", "hint"),
    [
        (404, "not found", "namespace is missing"),
        (403, "namespace evals is being terminated", "when it is gone"),
        (422, "spec is wrong", ""),
    ],
)
def test_what_helps(api: WholeApi, connection: Cluster, status: int, message: str, hint: str) -> None:
    api.refusals[f"PATCH {NAMESPACE}/secrets"] = (status, message)
    with pytest.raises(PlatformError) as caught:
        apply(connection, objects(), dry_run=False)
    assert hint in caught.value.hint
    assert message in str(caught.value.items[0])


def test_whose_the_namespace_is(api: WholeApi, connection: Cluster) -> None:
    assert own_namespace(connection, "evals")
    api.hold(NAMESPACE)
    assert not own_namespace(connection, "evals")
    apply(connection, objects(own_namespace=False), dry_run=False)
    assert not own_namespace(connection, "evals")
    api.objects.clear()
    apply(connection, objects(), dry_run=False)
    assert own_namespace(connection, "evals")


def test_a_namespace_that_may_not_be_seen(api: WholeApi, connection: Cluster) -> None:
    api.refusals[f"GET {NAMESPACE}"] = (403, "forbidden")
    with pytest.raises(PlatformError) as caught:
        own_namespace(connection, "evals")
    assert caught.value.code == "cluster_refused"
