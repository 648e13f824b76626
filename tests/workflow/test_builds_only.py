"""Workflows that build images and run nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from argo_harbor.errors import Refused
from argo_harbor.model.build_plan import BuildPlan, PlannedImage
from argo_harbor.model.platform import Platform
from argo_harbor.workflow import names
from argo_harbor.workflow.build import MOST_SETS
from argo_harbor.workflow.builds_only import compile_builds
from argo_harbor.workflow.limits import MAX_DAG_TASKS, MAX_WORKFLOW_BYTES, breaches, size
from argo_harbor.workflow.nodes import colliding, node_names
from tests.support.plans import built
from tests.support.tasks import sha
from tests.workflow.conftest import Compare

SITE = Platform.from_data(
    {
        "schema": "platform-1",
        "namespace": "evaluations",
        "registry": "registry.tools.svc:5000/argo-harbor",
        "store": {"endpoint": "http://minio.storage.svc.cluster.local:9000"},
        "secrets": {"registry": "registry-push"},
        "build": {"args": {"MIRROR": "{{workflow.name}}"}},
    }
)
TOKEN = (("token", "builds/token"),)


def build_plan(
    number: int, *, secrets: dict[int, tuple[tuple[str, str], ...]] | None = None, **changes: Any
) -> BuildPlan:
    """A plan of so many images; `secrets` are what some of them mount."""
    images = tuple(
        PlannedImage(
            image=built(f"image {place}").model_copy(
                update={"secrets": (secrets or {}).get(place, ()), "arguments": (("A", "{{=1}}"),)}
            ),
            task=f"acme/task_{place}",
            digest=sha(f"task {place}"),
            side="verifier" if place % 5 == 4 else "agent",
            tasks=(f"acme/task_{place}",),
        )
        for place in range(number)
    )
    given = {"platform": SITE, "cap": 4, **changes}
    return BuildPlan(
        taskset=f"suite#{sha('suite')}", denied=("10.0.0.0/8",), build_seconds=2100, images=images, **given
    )


def entries(workflow: Any) -> list[dict[str, Any]]:
    return [
        entry
        for template in workflow["spec"]["templates"]
        for entry in template.get("dag", {}).get("tasks", [])
        if names.is_build(entry["template"])
    ]


def test_the_golden(golden: Compare) -> None:
    [workflow] = compile_builds(build_plan(3, secrets={1: TOKEN}))
    golden("builds-only.yaml", workflow)


def test_it_is_no_run_and_ends_without_a_merge() -> None:
    plan = build_plan(2)
    [workflow] = compile_builds(plan)
    metadata, spec = workflow["metadata"], workflow["spec"]
    assert metadata["generateName"] == "build-"
    assert names.PLAN_LABEL not in json.dumps(workflow)
    assert metadata["labels"] == {names.BUILDS_LABEL: plan.content_digest()[:16]}
    assert metadata["annotations"][names.BUILDS_LABEL] == plan.content_digest()
    assert "onExit" not in spec
    assert spec["parallelism"] == 4


def test_nothing_of_a_task_reaches_the_workflow() -> None:
    text = json.dumps(compile_builds(build_plan(3)))
    assert "{{=" not in text
    assert "MIRROR" not in text


def test_only_builds_that_use_a_secret_mount_it() -> None:
    [workflow] = compile_builds(build_plan(3, secrets={1: TOKEN}))
    assert [entry["template"] for entry in entries(workflow)] == ["build", "build-with-secrets-0", "build"]
    by_name = {template["name"]: template for template in workflow["spec"]["templates"]}
    assert "builds" not in json.dumps([each.get("secret") for each in by_name["build"]["volumes"]])
    template = by_name["build-with-secrets-0"]
    assert template["volumes"][-1] == {
        "name": "build-secret-0",
        "secret": {
            "secretName": "builds",
            "items": [{"key": "token", "path": "value"}],
            "optional": True,
        },
    }
    mounts = {each["name"]: each for each in template["container"]["volumeMounts"]}
    assert mounts["build-secret-0"]["mountPath"] == "/etc/argo-harbor/build-secrets/token"
    for beside in yaml.safe_load(template["podSpecPatch"])["initContainers"]:
        assert "build-secret-0" not in {each["name"] for each in beside["volumeMounts"]}


def test_too_many_sets_of_secrets_are_refused() -> None:
    sets = {place: ((f"id-{place}", "a/b"),) for place in range(MOST_SETS + 1)}
    assert len(compile_builds(build_plan(MOST_SETS, secrets=sets))) == 1
    with pytest.raises(Refused, match="21 sets of build secrets"):
        compile_builds(build_plan(MOST_SETS + 1, secrets=sets))


@pytest.mark.parametrize(("images", "workflows"), [(190, 1), (300, 1), (3000, 3)])
def test_any_number_of_images_fits(images: int, workflows: int) -> None:
    made = compile_builds(build_plan(images))
    assert len(made) == workflows
    places = [entry["arguments"]["parameters"][0]["value"] for each in made for entry in entries(each)]
    assert sorted(map(int, places)) == list(range(images))
    for each in made:
        assert breaches(each) == []
        assert size(each).total <= MAX_WORKFLOW_BYTES
        assert all(
            len(template.get("dag", {}).get("tasks", ())) <= MAX_DAG_TASKS
            for template in each["spec"]["templates"]
        )
    assert colliding(node_names(made[0], "build-0123456789abcdef")) == []


def test_several_workflows_of_one_plan_hold_one_lock() -> None:
    plan = build_plan(3000)
    locks = [each["spec"]["synchronization"]["mutexes"] for each in compile_builds(plan)]
    assert locks == [[{"name": f"argo-harbor-builds-{plan.content_digest()[:16]}"}]] * 3
    assert "synchronization" not in compile_builds(build_plan(3))[0]["spec"]


def test_names_are_of_the_tasks_as_far_as_argo_takes_them() -> None:
    [workflow] = compile_builds(build_plan(6))
    assert [entry["name"] for entry in entries(workflow)][3:5] == ["build-task-3", "build-task-4-verifier"]


def test_a_broken_platform_and_an_empty_plan() -> None:
    with pytest.raises(Refused, match="names no host"):
        compile_builds(build_plan(1, platform=Platform.from_data({"store": {"endpoint": "http://"}})))
    with pytest.raises(ValueError, match="nothing to build"):
        compile_builds(build_plan(0))
