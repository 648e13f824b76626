"""Parts of a split run as objects: named by their run, owned by it, told of it."""

from __future__ import annotations

from typing import Any

import pytest

from argo_harbor.cluster.connect import connect
from argo_harbor.cluster.parts import find_or_create, part_name, part_object
from argo_harbor.cluster.workflows import find_workflow, list_parts
from argo_harbor.errors import PlatformError
from argo_harbor.workflow.nodes import colliding, node_names
from tests.support.api_server import ApiServer

PART: dict[str, Any] = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Workflow",
    "metadata": {"generateName": "part-003-", "labels": {"argo-harbor/plan": "p"}, "annotations": {"a": "b"}},
    "spec": {
        "entrypoint": "main",
        "arguments": {"parameters": [{"name": "run", "value": "unset"}]},
        "templates": [{"name": "main", "dag": {"tasks": [{"name": "x", "template": "t"}]}}, {"name": "t"}],
    },
}


def made(name: str = "run-1-003", uid: str = "u1") -> dict[str, Any]:
    return part_object(PART, name=name, run="run-1", parent_uid=uid, namespace="argo-harbor")


def test_a_part_knows_its_run_and_goes_with_it() -> None:
    body = made()
    assert "generateName" not in body["metadata"]
    assert body["metadata"]["labels"] == {"argo-harbor/plan": "p", "argo-harbor/run": "run-1"}
    assert body["metadata"]["annotations"] == {"a": "b"}
    [owner] = body["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Workflow", "run-1", "u1")
    assert body["spec"]["arguments"] == {
        "parameters": [{"name": "run", "value": "run-1"}, {"name": "workflow", "value": "u1"}]
    }
    assert PART["metadata"]["generateName"] == "part-003-", "what was read stays as it is"


def test_names_are_the_same_each_time_and_short_enough() -> None:
    assert part_name("run-1", 3, PART) == "run-1-003"
    long = "nightly-" + "x" * 55
    assert part_name(long, 3, PART) == part_name(long, 3, PART)
    assert len(part_name(long, 12, PART)) <= 63
    assert part_name(long, 3, PART) != part_name(long[:-1] + "y", 3, PART)


def test_a_name_under_which_steps_would_collide_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def first_collides(names: list[str]) -> list[tuple[str, ...]]:
        asked.append(names[0])
        return [("a", "b")] if len(asked) == 1 else colliding(names)

    monkeypatch.setattr("argo_harbor.cluster.parts.colliding", first_collides)
    assert part_name("run-1", 3, PART) == "run-1-003-1"
    assert asked == [node_names(PART, name)[0] for name in ("run-1-003", "run-1-003-1")]  # type: ignore[arg-type]
    monkeypatch.setattr("argo_harbor.cluster.parts.colliding", lambda names: [("a", "b")])
    with pytest.raises(RuntimeError, match="cannot be told apart"):
        part_name("run-1", 3, PART)


def test_a_part_is_created_once(api: ApiServer) -> None:
    cluster = connect(namespace="argo-harbor")
    first = find_or_create(cluster, made())
    again = find_or_create(cluster, made())
    assert first.uid == again.uid
    assert [method for method, _ in api.asked].count("POST") == 1


def test_a_part_that_comes_to_be_meanwhile_is_taken(api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = connect(namespace="argo-harbor")
    find_or_create(cluster, made())
    monkeypatch.setattr("argo_harbor.cluster.parts.find_workflow", lambda *_: None)
    assert find_or_create(cluster, made()).name == "run-1-003"


def test_a_foreign_workflow_of_that_name_is_refused(api: ApiServer) -> None:
    cluster = connect(namespace="argo-harbor")
    find_or_create(cluster, made(uid="u2"))
    with pytest.raises(PlatformError, match="belongs to another run") as error:
        find_or_create(cluster, made(uid="u1"))
    assert error.value.code == "run_id_reused"


def test_whoever_looks_for_the_parts_of_a_run_finds_it(api: ApiServer) -> None:
    cluster = connect(namespace="argo-harbor")
    path = "/apis/argoproj.io/v1alpha1/namespaces/argo-harbor/workflows/run-1"
    api.put(path, {"metadata": {"uid": "u1", "labels": {"argo-harbor/plan": "p"}}})
    find_or_create(cluster, made())
    parent = find_workflow(cluster, "run-1")
    assert parent is not None
    assert [part.name for part in list_parts(cluster, parent)] == ["run-1-003"]
