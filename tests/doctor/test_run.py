"""The whole examination: what a good cluster looks like, one fault at a time, and that nothing is left."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from argo_harbor.doctor.installed import platform_of
from argo_harbor.doctor.result import Result
from argo_harbor.doctor.run import Examination
from argo_harbor.doctor.visit import LABEL
from tests.doctor.conftest import NAMESPACE, Bench

# What is tried from this machine: the store of the tests answers nobody.
_FROM_HERE = "store from here"


def examine(bench: Bench, *, quick: bool = False, seconds: float = 5) -> dict[str, Result]:
    examination = Examination(bench.connect(), bench.platform, quick=quick, seconds=seconds)
    found = {line.result.name: line.result for line in examination.lines()}
    assert set(found) <= set(examination.order)
    assert not examination.leftovers
    assert not examination.waiting
    made = [
        path for path, item in bench.api.objects.items() if LABEL in (item["metadata"].get("labels") or {})
    ]
    # Pods of the probe workflow are its own to remove, by the cluster's garbage collection.
    assert not [path for path in made if "/argo-harbor-doctor-" in path and "-argo-" not in path]
    return found


def test_a_good_cluster(bench: Bench) -> None:
    found = examine(bench)
    bad = {name: result for name, result in found.items() if result.status != "ok"}
    assert set(bad) == {_FROM_HERE}
    assert "127.0.0.1:9" in bad[_FROM_HERE].message
    assert found["kubernetes"].message == "v1.34.4"
    assert "argoexec:v4.0.5" in found["argo controller"].message
    assert {f"image {name}" for name in ("runner", "execd", "egress", "buildkit")} <= set(found)


def test_a_quick_look_makes_nothing(bench: Bench) -> None:
    bench.api.queries.clear()
    found = examine(bench, quick=True)
    assert "network policy" not in found
    assert {asked for asked, _ in bench.api.queries if asked.startswith("POST")} == {
        "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    }


def test_without_an_installation_the_server_is_looked_at_all_the_same(bench: Bench) -> None:
    for path in [path for path in bench.api.objects if path.startswith(f"{NAMESPACE}/configmaps")]:
        del bench.api.objects[path]
    nothing = platform_of(bench.connect())
    assert isinstance(nothing, Result)
    assert "install --discover" in nothing.hint
    examination = Examination(bench.connect(), nothing, quick=False)
    found = {line.result.name: line.result for line in examination.lines()}
    assert found["installation"] == nothing
    assert found["kubernetes"].status == "ok"
    assert found["permissions"].status == "ok"


def test_the_installed_platform_is_the_one_in_force(bench: Bench) -> None:
    assert platform_of(bench.connect()) == bench.platform


def test_settings_that_may_not_be_read(bench: Bench) -> None:
    bench.api.refusals[f"GET {NAMESPACE}/configmaps"] = (403, "forbidden")
    found = platform_of(bench.connect())
    assert isinstance(found, Result)
    assert found.status == "failed"
    assert "ask for the right" in found.hint


@pytest.mark.parametrize(
    ("verb", "resource", "lines"),
    [
        ("create", "pods", {"dns", "network policy", "native sidecars", "image runner"}),
        ("create", "networkpolicies", {"network policy", "policy openings"}),
        ("create", "workflows", {"argo controller", "argo executor"}),
    ],
)
def test_who_lacks_a_right_is_told_and_sees_the_rest(
    bench: Bench, verb: str, resource: str, lines: set[str]
) -> None:
    bench.api.may = lambda asked: (asked["verb"], asked["resource"]) != (verb, resource)
    found = examine(bench)
    assert {found[line].status for line in lines} == {"skipped"}
    assert all(f"{verb} {resource}" in found[line].message for line in lines)
    assert found["kubernetes"].status == "ok"


def test_a_server_that_refuses_a_probe_pod(bench: Bench) -> None:
    bench.api.refusals[f"POST {NAMESPACE}/pods"] = (422, "an admission check says no")
    found = examine(bench)
    assert found["dns"] == Result(
        "dns", "failed", "an admission check says no", "see the API server's own words"
    )
    bench.api.refusals[f"POST {NAMESPACE}/pods"] = (403, "exceeded quota")
    assert examine(bench)["dns"].status == "skipped"


def test_what_a_killed_doctor_left_is_removed(bench: Bench) -> None:
    old = {"labels": {LABEL: "old"}, "creationTimestamp": "2026-01-01T00:00:00Z"}
    bench.api.hold(f"{NAMESPACE}/pods/left", metadata=dict(old))
    bench.api.hold(f"{NAMESPACE}/pods/of-now", metadata={"labels": {LABEL: "other"}})
    bench.api.objects[f"{NAMESPACE}/pods/of-now"]["metadata"]["creationTimestamp"] = "not a time"
    examine(bench)
    assert "left" not in bench.api.names(f"{NAMESPACE}/pods")
    assert "of-now" in bench.api.names(f"{NAMESPACE}/pods")


def test_an_interrupted_examination_leaves_nothing(bench: Bench) -> None:
    bench.answers["supplies"] = None
    examination = Examination(bench.connect(), bench.platform, quick=False, seconds=30)
    with contextlib.closing(examination.lines()) as lines:
        assert any(line.result.name == "network policy" for line in lines)
    assert "dns" in examination.waiting
    assert not [
        name for name in bench.api.names(f"{NAMESPACE}/pods") if name.endswith(("supplies", "fenced"))
    ]


def test_what_cannot_be_removed_is_named(bench: Bench) -> None:
    bench.api.refusals[f"DELETE {NAMESPACE}/pods"] = (403, "forbidden")
    examination = Examination(bench.connect(), bench.platform, quick=False)
    assert list(examination.lines())
    assert any(path.endswith("-supplies") for path in examination.leftovers)


def test_it_says_what_it_waits_for(bench: Bench) -> None:
    waiting: list[tuple[str, ...]] = []
    bench.answers["supplies"] = None
    examination = Examination(bench.connect(), bench.platform, quick=False, seconds=1.5)
    found: list[Any] = list(examination.lines(lambda: waiting.append(examination.waiting)))
    assert any("dns" in names for names in waiting)
    assert found
