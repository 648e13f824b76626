"""Store, registry and names as a pod tells about them."""

from __future__ import annotations

from typing import Any

import pytest

from argo_harbor.doctor.result import Result
from argo_harbor.doctor.supplies import supplies
from argo_harbor.doctor.visit import Visit
from argo_harbor.model.platform import SecretNames
from tests.doctor.conftest import PLATFORM, Bench


def lines(bench: Bench, seconds: float = 1) -> dict[str, Result]:
    return {each.name: each for each in supplies(Visit(bench.connect(), seconds=seconds), bench.platform)}


@pytest.mark.parametrize(
    ("answer", "line", "message", "hint"),
    [
        ({"store": {"error": "no bucket", "hint": "make it"}}, "store from pods", "no bucket", "make it"),
        ({"store": {"error": "no bucket"}}, "store from pods", "no bucket", "[store]"),
        ({"store": {"error": "", "skew": -400.0}}, "node clock", "400 s behind", "NTP"),
        ({"registry": {"error": "401", "secret": "push"}}, "registry", "401", "Secret push"),
        ({"registry": {"error": "401", "secret": ""}}, "registry", "401", "secrets.registry"),
        ({"dns": "kubernetes.default.svc: no answer"}, "dns", "no answer", "kube-dns"),
    ],
)
def test_what_is_wrong_and_its_cure(
    bench: Bench, answer: dict[str, Any], line: str, message: str, hint: str
) -> None:
    bench.answers["supplies"] |= answer
    found = lines(bench)[line]
    assert found.status == "failed"
    assert message in found.message
    assert hint in found.hint


def test_secrets_are_mounted_and_never_named_by_value(bench: Bench) -> None:
    lines(bench)
    (pod,) = [item for item in bench.api.objects.values() if item.get("kind") == "Pod"]
    sources = [volume["secret"] for volume in pod["spec"]["volumes"]]
    assert [(source["secretName"], source["optional"]) for source in sources] == [
        ("argo-harbor-store", True),
        ("push", True),
    ]
    bench.platform = PLATFORM.model_copy(update={"secrets": SecretNames(image_pull=("pull",))})
    lines(bench)
    other = [item for item in bench.api.objects.values() if item.get("kind") == "Pod" and item != pod]
    assert other[0]["spec"]["imagePullSecrets"] == [{"name": "pull"}]
    assert len(other[0]["spec"]["volumes"]) == 1


def test_a_pod_that_says_nothing(bench: Bench) -> None:
    bench.answers["supplies"] = None
    found = lines(bench, seconds=0.3)
    assert found["store from pods"].status == "failed"
    assert {found["registry"].status, found["dns"].status} == {"skipped"}
