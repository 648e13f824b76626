"""Whether an Argo controller serves the namespace, from what becomes of a workflow."""

from __future__ import annotations

from typing import Any

import pytest

from argo_harbor.doctor.argo import CONTROLLER, NETWORK, STEP, workflow
from argo_harbor.doctor.result import Result
from argo_harbor.doctor.visit import Visit
from tests.doctor.conftest import NAMESPACE, Bench


def lines(bench: Bench, seconds: float = 0.5) -> dict[str, Result]:
    return {each.name: each for each in workflow(Visit(bench.connect(), seconds=seconds), bench.platform)}


def pending(image: str, message: str = "") -> dict[str, Any]:
    state = {"waiting": {"reason": "ErrImagePull", "message": message}}
    return {"phase": "Pending", "containerStatuses": [{"name": "main", "image": image, "state": state}]}


def test_no_controller(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argo_harbor.doctor.argo._UNSEEN_SECONDS", 0.1)
    bench.controller = False
    found = lines(bench, seconds=5)
    assert found[CONTROLLER].status == "failed"
    assert "workflow-controller" in found[CONTROLLER].hint
    assert {found[STEP].status, found[NETWORK].status} == {"skipped"}


@pytest.mark.parametrize(
    ("image", "status"),
    [
        ("quay.example/argoexec:v3.6.2", "failed"),
        ("quay.example/argoexec:v3.7.18", "ok"),
        ("quay.example/argoexec:v4.1.2-nonroot", "ok"),
        ("quay.example/argoexec:latest", "ok"),
    ],
)
def test_the_version_by_the_executors_image(bench: Bench, image: str, status: str) -> None:
    bench.executor = image
    found = lines(bench)[CONTROLLER]
    assert found.status == status
    assert image in found.message


def test_a_controller_whose_pods_nobody_saw(bench: Bench) -> None:
    bench.step_pod = lambda entry: None
    assert "was not seen" in lines(bench)[CONTROLLER].message


def test_steps_that_end_faster_than_pods_are_looked_at(bench: Bench) -> None:
    visit = Visit(bench.connect(), seconds=5)
    assert not visit.pods()
    found = {each.name: each for each in workflow(visit, bench.platform)}
    assert bench.executor in found[CONTROLLER].message


@pytest.mark.parametrize(
    ("entry", "line", "said", "hint"),
    [
        ("leaves-artifact", STEP, "failed to save artifact: bucket is missing", "[store]"),
        ("leaves-artifact", STEP, "workflowtaskresults is forbidden", "install"),
        ("makes-policy", NETWORK, "main: Error (exit code 64)", "argo-harbor-network"),
        ("leaves-artifact", STEP, "OOMKilled", "events"),
    ],
)
def test_a_step_that_failed(bench: Bench, entry: str, line: str, said: str, hint: str) -> None:
    bench.steps[entry] = {"phase": "Error", "message": said}
    found = lines(bench)[line]
    assert (found.status, found.message) == ("failed", said)
    assert hint in found.hint


@pytest.mark.parametrize(
    ("event", "hint"),
    [
        ('secret "argo-harbor-executor.service-account-token" not found', "install"),
        ('secret "argo-harbor-store" not found', "secrets"),
    ],
)
def test_a_step_whose_pod_waits_for_a_secret(bench: Bench, event: str, hint: str) -> None:
    bench.steps["leaves-artifact"] = {"phase": "Pending"}
    bench.step_pod = lambda entry: {"phase": "Pending"}
    visit = Visit(bench.connect(), seconds=0.3)
    bench.api.hold(
        f"{NAMESPACE}/events/e",
        type="Warning",
        message=f"MountVolume.SetUp failed: {event}",
        involvedObject={"name": f"{visit.name('argo')}-0"},
    )
    found = {each.name: each for each in workflow(visit, bench.platform)}[STEP]
    assert found.status == "failed"
    assert event in found.message
    assert hint in found.hint


def test_images_that_are_not_there_end_the_look_at_once(bench: Bench) -> None:
    bench.steps = {"leaves-artifact": {"phase": "Pending"}, "makes-policy": {"phase": "Pending"}}
    images = {"leaves-artifact": "r.example/runner:1", "makes-policy": "quay.example/argoexec:v4.0.5"}
    bench.step_pod = lambda entry: pending(images[entry], "not found")
    found = lines(bench, seconds=60)
    assert found[STEP].status == "skipped"
    assert found[NETWORK].status == "failed"
    assert "--executor-image" in found[NETWORK].hint


def test_a_step_that_is_not_over_in_time(bench: Bench) -> None:
    bench.steps["leaves-artifact"] = {"phase": "Running"}
    bench.step_pod = lambda entry: {"phase": "Running"}
    assert "--seconds" in lines(bench)[STEP].hint
    bench.step_pod = lambda entry: None
    assert "has no pod" in lines(bench)[STEP].message
    del bench.steps["makes-policy"]
    assert "has not started it" in lines(bench)[NETWORK].message
