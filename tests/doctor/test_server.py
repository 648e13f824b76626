"""What the API server itself says."""

from __future__ import annotations

import pytest

from argo_harbor.doctor import server
from tests.doctor.conftest import Bench


@pytest.mark.parametrize(
    ("version", "status", "message"),
    [
        ("v1.29.0", "ok", "v1.29.0"),
        ("v1.34.4+k3s1", "ok", "v1.34.4+k3s1"),
        ("v2.0.0", "ok", "v2.0.0"),
        ("v1.28.15", "failed", "no native sidecars"),
        ("strange", "failed", "'strange'"),
    ],
)
def test_kubernetes(bench: Bench, version: str, status: str, message: str) -> None:
    bench.api.version = version
    (found,) = server.kubernetes_version(bench.connect())
    assert found.status == status
    assert message in found.message


def test_argo_is_missing_or_only_in_part(bench: Bench) -> None:
    bench.api.kinds["argoproj.io/v1alpha1"].remove("workflowtaskresults")
    (found,) = server.argo_kinds(bench.connect())
    assert (found.status, found.message) == ("failed", "missing: workflowtaskresults")
    del bench.api.kinds["argoproj.io/v1alpha1"]
    (found,) = server.argo_kinds(bench.connect())
    assert found.status == "failed"
    assert "install Argo" in found.hint


def test_clocks(bench: Bench) -> None:
    (found,) = server.clock(bench.connect())
    assert found.status == "ok"
    bench.api.date = "Thu, 01 Jan 2026 00:00:00 GMT"
    (found,) = server.clock(bench.connect())
    assert found.status == "failed"
    assert "behind" in found.message
    assert "NTP" in found.hint
    assert "ahead" in server.skew_result("clock", "it", 90).message


def test_permissions_name_what_is_missing_and_the_role(bench: Bench) -> None:
    (found,) = server.permissions(bench.connect(), "argo-harbor-store")
    assert found.status == "ok"
    bench.api.may = lambda asked: asked["resource"] != "secrets"
    (found,) = server.permissions(bench.connect(), "argo-harbor-store")
    assert found.message.startswith("you may not get secrets argo-harbor-store, create secrets")
    assert "--role argo-harbor-user" in found.hint
    bench.api.may = lambda asked: False
    (found,) = server.permissions(bench.connect(), "argo-harbor-store")
    assert " more" in found.message


def test_a_part_of_a_kind_is_asked_for_as_one(bench: Bench) -> None:
    bench.api.may = lambda asked: asked["subresource"] != "log"
    (found,) = server.permissions(bench.connect(), "argo-harbor-store")
    assert found.message == "you may not get pods/log"
