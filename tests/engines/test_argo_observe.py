"""What is told of a running workflow's tasks and steps, from real compiled workflows and made-up states."""

from __future__ import annotations

from typing import Any

from argo_harbor.bundle.observed import Observed, Step
from argo_harbor.cluster.pods import Pod
from argo_harbor.cluster.workflows import Workflow
from argo_harbor.engines.argo_observe import observe, trial_pods
from argo_harbor.workflow.compile import compile_workflow
from tests.support.plans import generated_plan


def node(name: str, template: str, phase: str, **more: Any) -> dict[str, Any]:
    parameters = [{"name": key, "value": value} for key, value in more.pop("inputs", {}).items()]
    return {
        "name": f"run-1.{name}",
        "displayName": name,
        "type": "Pod",
        "templateName": template,
        "phase": phase,
        "inputs": {"parameters": parameters},
        **more,
    }


def pod(node_id: str, phase: str = "Pending", *, uid: str = "u", **status: Any) -> Pod:
    return Pod(
        {
            "metadata": {
                "name": node_id,
                "uid": uid,
                "labels": {"argo-harbor/task-index": "0", "argo-harbor/attempt": "0"},
                "annotations": {"workflows.argoproj.io/node-id": node_id},
            },
            "status": {"phase": phase, **status},
        }
    )


def look(
    nodes: dict[str, Any], pods: list[Pod] | None = None, *, tasks: int = 4, images: int = 2, **more: Any
) -> Observed:
    (compiled, *_) = compile_workflow(generated_plan(tasks, images=images))
    workflow = Workflow({**compiled, "status": {"nodes": nodes}})
    return observe([workflow], pods or [], **more)


def build_names(tasks: int = 4, images: int = 2) -> list[str]:
    (compiled, *_) = compile_workflow(generated_plan(tasks, images=images))
    templates = {each["name"]: each for each in compiled["spec"]["templates"]}  # type: ignore[typeddict-item]
    return [task["name"] for task in templates["main"]["dag"]["tasks"] if task["template"] == "build"]


def test_tasks_wait_for_the_image_that_their_entries_depend_on() -> None:
    first, second = build_names()
    found = look(
        {
            "a": node(first, "build", "Running", type="Retry", children=["a0"], inputs={"index": "0"}),
            "a0": node(f"{first}(0)", "build", "Pending", inputs={"index": "0"}),
            "b": node(second, "build", "Succeeded", inputs={"index": "1"}),
        },
        [pod("a0", conditions=[{"type": "PodScheduled", "status": "False", "message": "no room"}])],
    )
    assert found.building == {0, 2}
    assert found.details == dict.fromkeys((0, 2), "building its image: pending: no room")
    assert found.steps == (Step(first, "running", "no room"), Step(second, "succeeded"))


def test_builds_of_a_chunked_workflow_hold_up_whole_chunks() -> None:
    (name,) = build_names(400, 1)
    found = look({"a": node(name, "build", "Running", inputs={"index": "0"})}, tasks=400, images=1)
    assert found.building == set(range(400))


def test_where_trials_are() -> None:
    trial = "trial-0123abcd"
    nodes = {
        "a": node("t0(0)", trial, "Running", inputs={"index": "0"}),
        "b": node("t1", trial, "Pending", inputs={"index": "1"}, message="Unschedulable: taints"),
        "c": node("t2", trial, "Pending", inputs={"index": "2"}),
        "d": node("t3", trial, "Succeeded", inputs={"index": "3"}),
        "e": node("t3", trial, "Running", type="Retry", inputs={"index": "3"}),
    }
    assert look(nodes, [pod("a", "Running")]).details == {
        0: "running",
        1: "pending: Unschedulable: taints",
        2: "pending",
    }
    assert look(nodes, [pod("a", "Running")], phases={"u": "verifier"}).details[0] == "verifier"


def test_an_image_that_cannot_be_pulled_is_named() -> None:
    waiting = {"reason": "ImagePullBackOff", "message": "401 Unauthorized"}
    found = look(
        {"a": node("t0", "agent-0123abcd", "Pending", inputs={"index": "0"})},
        [pod("a", containerStatuses=[{"name": "sandbox", "image": "r/x:1", "state": {"waiting": waiting}}])],
        logins=["mine"],
    )
    assert found.details == {
        0: "pending: docker.io refuses a pull of r/x:1 with the login of Secret mine: "
        "ImagePullBackOff: 401 Unauthorized"
    }


def test_steps_in_the_order_in_which_they_began() -> None:
    found = look(
        {
            "z": node("network-base", "network-base", "Failed", startedAt="1", message="exit status 64"),
            "y": node("gate", "gate", "Omitted", startedAt="2"),
            "x": node("onExit", "merge", "Pending", startedAt="3", message="waits"),
            "w": node("t0", "trial-0", "Omitted", startedAt="2"),
        }
    )
    assert found.steps == (
        Step("network-base", "failed", "exit status 64"),
        Step("gate", "omitted"),
        Step("merge", "pending", "waits"),
    )
    assert found.complete


def test_nodes_that_only_argos_server_has() -> None:
    assert not observe([Workflow({"status": {"offloadNodeStatusVersion": "1"}})], []).complete


def test_only_running_pods_of_trials_are_asked() -> None:
    other = Pod({"metadata": {"labels": {}}, "status": {"phase": "Running"}})
    assert trial_pods([pod("a", "Running"), pod("b"), other]) == [pod("a", "Running")]


def test_a_build_that_failed_is_told_of_the_tasks_that_wait_for_it() -> None:
    (name,) = build_names(2, 1)
    found = look({"a": node(name, "build", "Failed", message="exit 1")}, tasks=2, images=1)
    assert found.details == dict.fromkeys((0, 1), "its image was not built: exit 1")
    assert found.building == frozenset()
