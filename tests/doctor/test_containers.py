"""Images and native sidecars, as the node tells about them."""

from __future__ import annotations

from typing import Any

import pytest

from argo_harbor.doctor.containers import images, native_sidecar
from argo_harbor.doctor.result import Result
from argo_harbor.doctor.visit import Visit
from tests.doctor.conftest import NAMESPACE, Bench

_PULL = 'failed to pull and unpack image "r.example/execd:1": failed to resolve reference: {cause}'


def lines(bench: Bench, seconds: float = 0.5) -> dict[str, Result]:
    return {each.name: each for each in images(Visit(bench.connect(), seconds=seconds), bench.platform)}


def status_of(**containers: dict[str, Any]) -> dict[str, Any]:
    return {
        "phase": "Pending",
        "containerStatuses": [
            {"name": name, "image": f"r.example/{name}:1", "state": state}
            for name, state in containers.items()
        ],
    }


def ended(code: int, message: str = "") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "message": message}}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message}}


@pytest.mark.parametrize(
    ("cause", "hint"),
    [("unexpected status: 401 Unauthorized", "secrets.image_pull"), ("not found", "[images]")],
)
def test_an_image_that_cannot_be_pulled(bench: Bench, cause: str, hint: str) -> None:
    bench.statuses["images"] = status_of(
        runner=ended(0),
        execd=waiting("ErrImagePull", _PULL.format(cause=cause)),
        egress=ended(0),
        buildkit=ended(0),
    )
    found = lines(bench)
    assert found["image runner"].status == "ok"
    assert found["image execd"].status == "failed"
    assert found["image execd"].message == f"r.example/execd:1: failed to resolve reference: {cause}"
    assert hint in found["image execd"].hint


def test_an_image_without_what_pods_call(bench: Bench) -> None:
    bench.statuses["images"] = status_of(
        runner=ended(1, "ModuleNotFoundError: No module named 'argo_harbor.doctor'"),
        execd=ended(128, ""),
        egress=ended(0),
        buildkit=ended(0),
    )
    found = lines(bench)
    assert "does not hold what pods call: ModuleNotFoundError" in found["image runner"].message
    assert "images.execd" in found["image execd"].hint


def test_an_image_that_is_still_being_pulled(bench: Bench) -> None:
    bench.statuses["images"] = status_of(
        runner=ended(0), execd=ended(0), egress=waiting("ContainerCreating"), buildkit=ended(0)
    )
    found = lines(bench)
    assert found["image egress"].status == "failed"
    assert "is not there yet: being pulled" in found["image egress"].message


def test_an_event_says_why_nothing_starts(bench: Bench) -> None:
    bench.statuses["images"] = {"phase": "Pending"}
    visit = Visit(bench.connect(), seconds=0.3)
    for number, (kind, message) in enumerate(
        [("Warning", "first"), ("Warning", "no room on the node"), ("Normal", "fine")]
    ):
        bench.api.hold(
            f"{NAMESPACE}/events/e{number}",
            type=kind,
            message=message,
            lastTimestamp=f"2026-01-01T00:00:0{number}Z",
            involvedObject={"name": visit.name("images")},
        )
    found = images(visit, bench.platform)
    assert all("no room on the node" in each.message for each in found)


def test_events_that_may_not_be_read(bench: Bench) -> None:
    bench.api.refusals[f"GET {NAMESPACE}/events"] = (403, "forbidden")
    assert Visit(bench.connect(), seconds=1).warning_about("pod") == ""


def test_a_sidecar_that_is_up_first(bench: Bench) -> None:
    (found,) = native_sidecar(Visit(bench.connect(), seconds=1), bench.platform)
    assert found.status == "ok"
    (pod,) = [item for item in bench.api.objects.values() if item.get("kind") == "Pod"]
    assert pod["spec"]["initContainers"][0]["restartPolicy"] == "Always"


def test_a_sidecar_that_is_not_up_first(bench: Bench) -> None:
    bench.answers["sidecar"] = {"error": "127.0.0.1:8081: refused"}
    (found,) = native_sidecar(Visit(bench.connect(), seconds=1), bench.platform)
    assert found.status == "failed"
    assert "1.29" in found.hint


def test_a_sidecar_after_which_nothing_starts(bench: Bench) -> None:
    bench.statuses["sidecar"] = {
        "phase": "Pending",
        "initContainerStatuses": [{"name": "beside", "state": {"running": {}}}],
    }
    (found,) = native_sidecar(Visit(bench.connect(), seconds=0.3), bench.platform)
    assert found.status == "failed"
    assert "1.29" in found.hint


@pytest.mark.parametrize(
    ("status", "state", "message"),
    [
        (
            {
                "phase": "Failed",
                "containerStatuses": [{"name": "main", "state": ended(1, "No module named x")}],
            },
            "failed",
            "of another version",
        ),
        (
            {
                "phase": "Failed",
                "containerStatuses": [{"name": "main", "state": ended(1, '{"crash": "boom"}')}],
            },
            "failed",
            "boom",
        ),
        (
            {
                "phase": "Failed",
                "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 9}}}],
            },
            "failed",
            "no reason",
        ),
        (
            {
                "phase": "Pending",
                "containerStatuses": [
                    {"name": "main", "image": "r.example/runner:1", "state": waiting("ErrImagePull")}
                ],
            },
            "skipped",
            "needs the runner's image",
        ),
        ({"phase": "Running"}, "failed", "still Running"),
    ],
)
def test_a_probe_that_says_nothing(bench: Bench, status: dict[str, Any], state: str, message: str) -> None:
    bench.statuses["sidecar"] = status
    (found,) = native_sidecar(Visit(bench.connect(), seconds=0.3), bench.platform)
    assert found.status == state
    assert message in found.message
