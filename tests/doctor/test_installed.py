"""What `install` brings, and the Secrets that the platform names."""

from __future__ import annotations

import base64

import pytest

from argo_harbor.doctor.installed import installation, named_secrets
from argo_harbor.doctor.places import store_from_here
from argo_harbor.model.platform import ServedModel
from argo_harbor.workflow import names
from tests.doctor.conftest import NAMESPACE, PLATFORM, Bench


def test_all_is_there(bench: Bench) -> None:
    (found,) = installation(bench.connect(), PLATFORM)
    assert found.status == "ok"
    assert "objects of version" in found.message


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (f"{NAMESPACE}/serviceaccounts/{names.TRIAL_ACCOUNT}", f"ServiceAccount/{names.TRIAL_ACCOUNT}"),
        (f"{NAMESPACE}/configmaps/{names.ARTIFACT_CONFIGMAP}", f"ConfigMap/{names.ARTIFACT_CONFIGMAP}"),
        (f"{NAMESPACE}/configmaps/{names.PROFILES_CONFIGMAP}", f"ConfigMap/{names.PROFILES_CONFIGMAP}"),
    ],
)
def test_one_is_missing(bench: Bench, path: str, name: str) -> None:
    del bench.api.objects[path]
    (found,) = installation(bench.connect(), PLATFORM)
    assert (found.status, found.message) == ("failed", f"missing or empty: {name}")
    assert "--apply" in found.hint


def test_empty_ones_count_as_missing(bench: Bench) -> None:
    secret = names.token_secret(names.EXECUTOR_ACCOUNT)
    bench.api.objects[f"{NAMESPACE}/secrets/{secret}"]["data"] = None
    bench.api.objects[f"{NAMESPACE}/configmaps/{names.PROFILES_CONFIGMAP}"]["data"] = {}
    bench.api.objects[f"{NAMESPACE}/configmaps/{names.ARTIFACT_CONFIGMAP}"]["data"] = {"other": ""}
    (found,) = installation(bench.connect(), PLATFORM)
    for name in (secret, names.PROFILES_CONFIGMAP, names.ARTIFACT_CONFIGMAP):
        assert name in found.message


def test_another_version_is_a_warning(bench: Bench) -> None:
    account = bench.api.objects[f"{NAMESPACE}/serviceaccounts/{names.TRIAL_ACCOUNT}"]
    account["metadata"]["labels"]["app.kubernetes.io/version"] = "0.0.9"
    (found,) = installation(bench.connect(), PLATFORM)
    assert found.status == "warning"
    assert "of version 0.0.9" in found.message


def test_what_may_not_be_seen(bench: Bench) -> None:
    bench.api.refusals[f"GET {NAMESPACE}/secrets"] = (403, "forbidden")
    (found,) = installation(bench.connect(), PLATFORM)
    assert found.status == "ok"
    assert "2 you may not see" in found.message
    for path in ("/api/v1/namespaces", "/apis"):
        bench.api.refusals[f"GET {path}"] = (403, "forbidden")
    (found,) = installation(bench.connect(), PLATFORM)
    assert found.status == "skipped"


def test_named_secrets(bench: Bench) -> None:
    model = ServedModel(base_url="https://m.example/v1", model="m", secret="models/key")
    platform = PLATFORM.model_copy(update={"models": {"m": model, "n": model}})
    missing, *more = named_secrets(bench.connect(), platform)
    assert not more
    assert (missing.status, missing.message) == ("failed", "models is missing or lacks key")
    assert "--from-file=key=FILE" in missing.hint
    bench.api.hold(f"{NAMESPACE}/secrets/models", data={"key": "eA=="})
    (found,) = named_secrets(bench.connect(), platform)
    assert (found.status, found.message) == ("ok", "3 with the keys that they need")
    del bench.api.objects[f"{NAMESPACE}/secrets/push"]
    bench.api.objects[f"{NAMESPACE}/secrets/argo-harbor-store"]["data"].pop("secret_key")
    messages = [each.message for each in named_secrets(bench.connect(), platform)]
    assert messages == [
        "argo-harbor-store is missing or lacks secret_key",
        "push is missing or lacks .dockerconfigjson",
    ]


def test_secrets_that_may_not_be_seen(bench: Bench) -> None:
    bench.api.refusals[f"GET {NAMESPACE}/secrets/push"] = (403, "forbidden")
    (found,) = named_secrets(bench.connect(), PLATFORM)
    assert (found.status, found.message) == ("ok", "1 with the keys that they need; push you may not see")
    bench.api.refusals[f"GET {NAMESPACE}/secrets"] = (403, "forbidden")
    (found,) = named_secrets(bench.connect(), PLATFORM)
    assert found.status == "skipped"
    (found,) = store_from_here(bench.connect(), PLATFORM, "visit")
    assert found.status == "skipped"


@pytest.mark.parametrize("value", ["", "%%%", base64.b64encode(b"\xff\xfe").decode()])
def test_a_store_secret_that_holds_no_keys(bench: Bench, value: str) -> None:
    secret = bench.api.objects[f"{NAMESPACE}/secrets/argo-harbor-store"]
    secret["data"]["access_key"] = value
    (found,) = store_from_here(bench.connect(), PLATFORM, "visit")
    assert found.status == "failed"
    assert "no credentials" in found.message
