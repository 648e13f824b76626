"""Builds of a taskset in a cluster: what is started, what is left out, and where each image is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from argo_harbor.bundle.images import record_image
from argo_harbor.engines.base import SubmitOptions
from argo_harbor.engines.build_images import ImageLine
from argo_harbor.engines.build_images_argo import ArgoBuilding
from argo_harbor.errors import PlatformError, Refused, UsageError
from argo_harbor.model.build import BuildRecord
from argo_harbor.model.build_plan import BuildPlan
from argo_harbor.planning.builds import plan_builds
from argo_harbor.registry.reference import parse_image
from argo_harbor.store import layout
from argo_harbor.workflow import names
from tests.engines.argo_bench import ArgoBench, install
from tests.support.api_server import Trouble
from tests.support.registry_double import Registry
from tests.support.suites import make_suite

CORE = "/api/v1/namespaces/argo-harbor"
DIGEST = f"sha256:{'0' * 64}"


@pytest.fixture
def two(argo: ArgoBench) -> ArgoBench:
    """With a suite of two tasks, each with an image of its own."""
    argo.suite = make_suite(argo.folder / "suite", tasks=2)
    return argo


def plan_of(argo: ArgoBench) -> BuildPlan:
    site = argo.engine.site
    return plan_builds(argo.taskset, platform=site.platform, profile=site.profile())


def build(argo: ArgoBench) -> ArgoBuilding:
    return argo.engine.build_images(plan_of(argo), argo.taskset)


def entries(argo: ArgoBench, name: str) -> list[str]:
    return [
        entry["name"]
        for template in argo.api.workflow(name)["spec"]["templates"]
        for entry in template.get("dag", {}).get("tasks", [])
        if names.is_build(entry["template"])
    ]


def says(argo: ArgoBench, name: str, *steps: tuple[int, str, str], phase: str = "Running") -> None:
    """Let the controller say where the builds are: place of the image, phase and message."""
    nodes: dict[str, Any] = {}
    for place, state, message in steps:
        identity = f"{name}-{place}"
        nodes[identity] = {
            "name": f"{name}.build-{place}",
            "displayName": f"build-{place}",
            "type": "Retry",
            "templateName": "build",
            "phase": state,
            "message": message,
            "children": [f"{identity}-0"],
            "inputs": {"parameters": [{"name": "image", "value": str(place)}]},
        }
        nodes[f"{identity}-0"] = {**nodes[identity], "type": "Pod", "children": []}
    argo.says(name, phase, nodes=nodes)


def pod(argo: ArgoBench, name: str, place: int, reason: str) -> None:
    """A pod that waits for a node."""
    argo.api.put(
        f"{CORE}/pods/{name}-{place}-0",
        {
            "metadata": {
                "labels": {"argo-harbor/run": name},
                "annotations": {"workflows.argoproj.io/node-id": f"{name}-{place}-0"},
            },
            "status": {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "message": reason}],
            },
        },
    )


def record(argo: ArgoBench, place: int, **facts: Any) -> None:
    image = plan_of(argo).images[place].image
    given = {"ok": True, **facts}
    record_image(argo.store, BuildRecord(image_key=image.key, reference=image.reference, **given))


def words(lines: list[ImageLine]) -> list[tuple[str, str]]:
    return [(line.word, line.detail) for line in lines]


def test_a_workflow_of_builds_only_under_the_users_name(two: ArgoBench) -> None:
    building = build(two)
    [name] = building.started
    assert building.joined == ()
    metadata = two.api.workflow(name)["metadata"]
    assert name.startswith("build-")
    assert len(name) == len("build-") + 16
    assert metadata["annotations"][names.USER_LABEL] == "somebody"
    assert names.PLAN_LABEL not in metadata["labels"]
    digest = metadata["annotations"][names.BUILDS_LABEL]
    assert BuildPlan.from_json(two.store.get(layout.build_plan(digest))) == plan_of(two)
    assert entries(two, name) == ["build-task-0000", "build-task-0001"]
    assert words(building.look()) == [("pending", "waits for its turn")] * 2


def test_it_is_none_of_the_runs(two: ArgoBench) -> None:
    [name] = build(two).started
    assert two.engine.list_runs() == []
    with pytest.raises(UsageError, match="no run of argo-harbor"):
        two.engine.survey(name)


def test_where_each_image_is(two: ArgoBench) -> None:
    building = build(two)
    [name] = building.started
    says(two, name, (0, "Running", ""), (1, "Pending", ""))
    pod(two, name, 1, "0/1 nodes are available: 1 Insufficient cpu.")
    assert words(building.look()) == [
        ("building", ""),
        ("pending", "0/1 nodes are available: 1 Insufficient cpu."),
    ]
    record(two, 0, digest=DIGEST, bases={"a": "sha256:b"})
    says(two, name, (0, "Succeeded", ""), (1, "Running", ""))
    ready, other = building.look()
    assert (ready.word, other.word) == ("ready", "building")
    assert ready.record is not None
    assert ready.record.bases == {"a": "sha256:b"}
    record(two, 1, ok=False, step="Dockerfile:2: RUN false", message="one\ntwo")
    says(two, name, (0, "Succeeded", ""), (1, "Failed", "exit code 1"), phase="Failed")
    failed = building.look()[1]
    assert (failed.word, failed.record and failed.record.step) == ("failed", "Dockerfile:2: RUN false")


def test_builds_that_ended_without_a_record_say_what_argo_said(two: ArgoBench) -> None:
    building = build(two)
    [name] = building.started
    says(two, name, (0, "Failed", "Pod was active on the node longer than the deadline"), phase="Failed")
    lines = building.look()
    assert [line.word for line in lines] == ["failed", "failed"]
    assert lines[0].record is not None
    assert lines[0].record.message == "Pod was active on the node longer than the deadline"
    assert "was never begun" in lines[1].detail
    del two.api.objects[f"/apis/argoproj.io/v1alpha1/namespaces/argo-harbor/workflows/{name}"]
    assert {line.detail for line in building.look()} == {"its workflow is gone, and left no record of it"}


def test_steps_that_only_argos_server_has(two: ArgoBench) -> None:
    building = build(two)
    [name] = building.started
    two.says(name, "Running", offloadNodeStatusVersion="fnv:1")
    record(two, 0)
    assert [line.word for line in building.look()] == ["ready", "building"]


def test_only_what_is_not_ready_is_built(two: ArgoBench) -> None:
    record(two, 0)
    record(two, 1, ok=False)
    building = build(two)
    [name] = building.started
    assert entries(two, name) == ["build-task-0001"]
    record(two, 1)
    again = build(two)
    assert again.started == ()
    says(two, name, (0, "Succeeded", ""), phase="Succeeded")
    done = build(two)
    assert (done.started, done.joined) == ((), ())
    assert [line.word for line in done.look()] == ["ready", "ready"]


def test_the_registry_knows_better_where_it_can_be_asked(two: ArgoBench) -> None:
    registry = Registry()
    with registry.running() as address:
        install(two.api, registry=address)
        name = parse_image(plan_of(two).images[1].image.reference)
        registry.manifests[f"{name.repository}:{name.version}"] = DIGEST
        record(two, 0)
        building = build(two)
        [workflow] = building.started
        assert entries(two, workflow) == ["build-task-0000"]
        assert [line.word for line in building.look()] == ["pending", "ready"]


def test_what_another_workflow_builds_is_not_started_again(two: ArgoBench) -> None:
    [first] = build(two).started
    second = build(two)
    assert (second.started, second.joined) == ((), (first,))
    says(two, first, (0, "Running", ""), (1, "Failed", "exit code 1"))
    record(two, 1, ok=False, step="RUN false")
    third = build(two)
    [started] = third.started
    assert third.joined == (first,)
    assert entries(two, started) == ["build-task-0001"]
    # The retry counts, and not the failure before it.
    assert [line.word for line in third.look()] == ["building", "pending"]


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(names.BUILDS_LABEL, "ab" * 32), (names.TASKSET_ANNOTATION, "other#1")],
    ids=["a plan that is gone", "another taskset"],
)
def test_other_builds_are_passed_over(two: ArgoBench, annotation: str, value: str) -> None:
    [name] = build(two).started
    two.api.workflow(name)["metadata"]["annotations"][annotation] = value
    second = build(two)
    assert (len(second.started), second.joined) == (1, ())


def test_looking_starts_nothing(two: ArgoBench) -> None:
    record(two, 0)
    assert [line.word for line in two.engine.look_at_images(plan_of(two))] == ["ready", "missing"]
    assert two.api.named("workflows") == []


def test_the_base_is_the_local_engines_business(two: ArgoBench) -> None:
    with pytest.raises(UsageError, match="for the local engine"):
        two.engine.build_images(plan_of(two), two.taskset, base="preview")


def test_a_cluster_that_takes_no_workflow(two: ArgoBench) -> None:
    two.api.troubles = [Trouble("POST", "/workflows", 403, "Forbidden", "quota exceeded")]
    with pytest.raises(PlatformError, match=r"cannot start the builds.*quota exceeded"):
        build(two)


BUILD_FIRST = SubmitOptions(environ={}, build_first="argo-harbor tasksets build-images REF --wait")


def test_a_run_of_a_published_taskset_wants_its_images_built(two: ArgoBench) -> None:
    record(two, 0, ok=False, code="base_image_not_found", step="FROM nowhere", message="a\nnot found")
    planned = two.plan()
    for call in (two.engine.check, two.engine.submit):
        with pytest.raises(Refused) as refused:
            call(planned, two.taskset, options=BUILD_FIRST)  # type: ignore[operator]
        error = refused.value
        assert (error.code, error.hint) == ("image_not_built", BUILD_FIRST.build_first)
        assert [(item.task, item.code) for item in error.items] == [
            ("acme/task-0000", "base_image_not_found"),
            ("acme/task-0001", "image_not_built"),
        ]
        assert error.items[0].message == "FROM nowhere: not found"
        assert error.message.startswith("tasks without images: acme/task-0000: base_image_not_found: FROM")
    assert two.api.named("workflows") == []
    record(two, 0)
    record(two, 1)
    assert two.engine.check(planned, two.taskset, options=BUILD_FIRST) == []


def test_a_registry_without_the_image_counts_more_than_the_record(two: ArgoBench) -> None:
    registry = Registry()
    with registry.running() as address:
        install(two.api, registry=address)
        record(two, 0)
        record(two, 1)
        with pytest.raises(Refused) as refused:
            two.engine.check(two.plan(), two.taskset, options=BUILD_FIRST)
        assert {item.code for item in refused.value.items} == {"image_not_built"}


def test_other_runs_build_what_is_missing(two: ArgoBench) -> None:
    assert two.engine.check(two.plan(), two.taskset, options=replace(BUILD_FIRST, build_first="")) == []


def test_a_long_list_is_cut_in_the_message_alone(argo: ArgoBench, tmp_path: Path) -> None:
    argo.suite = make_suite(tmp_path / "many", tasks=8)
    with pytest.raises(Refused) as refused:
        argo.engine.check(argo.plan(), argo.taskset, options=BUILD_FIRST)
    assert refused.value.message.endswith("; and 3 more")
    assert len(refused.value.items) == 8
    assert "task-0007" in json.dumps(refused.value.as_json())
