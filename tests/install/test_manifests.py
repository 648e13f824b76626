"""What is installed, as objects."""

from __future__ import annotations

import base64

import yaml

from argo_harbor.install.manifests import (
    KINDS,
    MANAGED_LABEL,
    VERSION_LABEL,
    Settings,
    StoreCredentials,
    manifests,
    path_of,
)
from argo_harbor.model.platform import Platform, StoreSettings
from argo_harbor.workflow import names
from argo_harbor.workflow.emit import to_yaml
from tests.support.kubernetes_models import kept

PLATFORM = Platform(
    namespace="evals",
    registry="registry.example/suites",
    store=StoreSettings(endpoint="https://s3.example:9000", prefix="team", secret="s3-keys"),
)
SETTINGS = Settings(PLATFORM, "# ours\n", {"closed": 'name = "closed"\n'})


def by_name(settings: Settings = SETTINGS, **options: bool) -> dict[str, dict]:
    return {f"{item['kind']}/{item['metadata']['name']}": item for item in manifests(settings, **options)}


def test_objects_are_those_of_kubernetes() -> None:
    models = {name: f"V1{name}" for name in KINDS}
    for item in manifests(SETTINGS._replace(credentials=StoreCredentials("a", "s"))):
        assert kept(models[item["kind"]], item) == item


def test_they_can_be_printed_and_read_back() -> None:
    for item in manifests(SETTINGS):
        assert yaml.safe_load(to_yaml(item)) == item


def test_what_others_refer_to_comes_first() -> None:
    kinds = [item["kind"] for item in manifests(SETTINGS)]
    assert kinds == sorted(kinds, key=list(KINDS).index)
    assert kinds[0] == "Namespace"


def test_all_carry_the_labels_by_which_they_are_found_again() -> None:
    for item in manifests(SETTINGS):
        assert item["metadata"]["labels"][MANAGED_LABEL] == "argo-harbor"
        assert item["metadata"]["labels"][VERSION_LABEL]


def test_a_namespace_that_was_there_is_not_called_ours() -> None:
    labels = by_name(own_namespace=False)["Namespace/evals"]["metadata"]["labels"]
    assert labels == {
        "pod-security.kubernetes.io/enforce": "privileged",
        "pod-security.kubernetes.io/warn": "baseline",
        "pod-security.kubernetes.io/audit": "baseline",
    }


def test_executors_get_their_token_where_argo_looks_for_it() -> None:
    secret = by_name()[f"Secret/{names.EXECUTOR_ACCOUNT}.service-account-token"]
    assert secret["type"] == "kubernetes.io/service-account-token"
    assert secret["metadata"]["annotations"] == {"kubernetes.io/service-account.name": names.EXECUTOR_ACCOUNT}


def test_no_account_has_its_token_mounted_by_default() -> None:
    accounts = [item for item in manifests(SETTINGS) if item["kind"] == "ServiceAccount"]
    assert accounts
    assert all(item["automountServiceAccountToken"] is False for item in accounts)


def test_accounts_without_rights_have_no_role() -> None:
    found = by_name()
    for account in (names.TRIAL_ACCOUNT, names.BUILD_ACCOUNT):
        assert f"ServiceAccount/{account}" in found
        assert f"Role/{account}" not in found
        assert f"RoleBinding/{account}" not in found


def test_a_binding_joins_account_and_role_of_one_name() -> None:
    binding = by_name()[f"RoleBinding/{names.MERGE_ACCOUNT}"]
    assert binding["roleRef"]["name"] == names.MERGE_ACCOUNT
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": names.MERGE_ACCOUNT, "namespace": "evals"}
    ]


def test_nobody_is_bound_to_the_role_of_people() -> None:
    found = by_name()
    assert f"Role/{names.USER_ROLE}" in found
    assert f"RoleBinding/{names.USER_ROLE}" not in found


def test_files_are_installed_as_they_were_given() -> None:
    found = by_name()
    assert found[f"ConfigMap/{names.PLATFORM_CONFIGMAP}"]["data"] == {"platform.toml": "# ours\n"}
    assert found[f"ConfigMap/{names.PROFILES_CONFIGMAP}"]["data"] == {"closed.toml": 'name = "closed"\n'}


def test_argo_keeps_its_artifacts_in_the_same_store_below_a_folder_of_its_own() -> None:
    data = by_name()[f"ConfigMap/{names.ARTIFACT_CONFIGMAP}"]["data"]
    assert yaml.safe_load(data["store"]) == {
        "s3": {
            "endpoint": "s3.example:9000",
            "insecure": False,
            "bucket": "argo-harbor",
            "keyFormat": "argo/team/{{workflow.namespace}}/{{workflow.name}}/{{pod.name}}",
            "accessKeySecret": {"name": "s3-keys", "key": "access_key"},
            "secretKeySecret": {"name": "s3-keys", "key": "secret_key"},
        }
    }


def test_the_stores_secret_comes_only_with_credentials_and_never_shows_them() -> None:
    assert "Secret/s3-keys" not in by_name()
    credentials = StoreCredentials("who", "knows")
    found = by_name(SETTINGS._replace(credentials=credentials))
    assert base64.b64decode(found["Secret/s3-keys"]["data"]["secret_key"]) == b"knows"
    assert "knows" not in repr(credentials)
    assert "knows" not in repr(SETTINGS._replace(credentials=credentials))


def test_paths_are_those_of_the_api() -> None:
    found = by_name()
    assert path_of(found["Namespace/evals"]) == "/api/v1/namespaces/evals"
    role = f"Role/{names.USER_ROLE}"
    assert (
        path_of(found[role]) == f"/apis/rbac.authorization.k8s.io/v1/namespaces/evals/roles/{names.USER_ROLE}"
    )
