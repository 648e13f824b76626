"""A run forced into parts: what parent and parts hold, down to the objects that the step creates."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from argo_harbor.cluster.parts import part_name, part_object
from argo_harbor.workflow import names
from argo_harbor.workflow.compile import compile_workflow
from tests.support.plans import built, run_plan, task_plan
from tests.support.workflows import templates, trials

RUN = "run-0123456789abcdef"


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    plan = run_plan([task_plan(index, image=built(f"image {index % 3}")) for index in range(9)], cap=2)
    with pytest.MonkeyPatch.context() as lowered:
        for module in ("limits", "split"):
            lowered.setattr(f"argo_harbor.workflow.{module}.MAX_WORKFLOW_BYTES", 20 << 10)
        return [dict(document) for document in compile_workflow(plan)]


def test_every_trial_is_in_one_part(documents: list[dict[str, Any]]) -> None:
    parent, *parts = documents
    assert len(parts) > 1
    assert trials([parent]) == {}
    assert sum(trials(parts).values()) == 9
    assert set(trials(parts)) == {(index, 0) for index in range(9)}


def test_only_the_parent_merges_and_only_it_is_taken_away_by_time(documents: list[dict[str, Any]]) -> None:
    parent, *parts = documents
    assert parent["spec"]["onExit"] == names.MERGE
    assert "ttlStrategy" in parent["spec"]
    for part in parts:
        assert not {"onExit", "ttlStrategy"} & part["spec"].keys()
        assert names.MERGE not in templates(part)


def test_parts_follow_one_another(documents: list[dict[str, Any]]) -> None:
    parent, *parts = documents
    entries = templates(parent)["main"]["dag"]["tasks"]
    shards = [entry for entry in entries if entry["template"] == names.SHARD]
    assert [entry["arguments"]["parameters"][0]["value"] for entry in shards] == [
        f"{number:03}" for number in range(len(parts))
    ]
    for before, entry in pairwise(shards):
        assert before["name"] in entry["depends"]


def test_a_step_that_only_follows_is_not_given_up_soon(documents: list[dict[str, Any]]) -> None:
    strategy = templates(documents[0])[names.SHARD]["retryStrategy"]
    assert int(strategy["limit"]) >= 10
    assert "255" in strategy["expression"]


def test_created_parts_name_the_run_in_every_pod(documents: list[dict[str, Any]]) -> None:
    for number, part in enumerate(documents[1:]):
        name = part_name(RUN, number, part)
        body = part_object(part, name=name, run=RUN, parent_uid="u1", namespace="evals")
        assert body["metadata"]["name"] == f"{RUN}-{number:03}"
        given = {each["name"]: each["value"] for each in body["spec"]["arguments"]["parameters"]}
        assert given == {"run": RUN, "workflow": "u1"}
        assert body["spec"]["podMetadata"]["labels"][names.RUN_LABEL] == "{{workflow.parameters.run}}"
        for template in templates(body).values():
            if "container" in template:
                arguments = template["container"]["args"]
                assert arguments[arguments.index("--run") + 1] == "{{workflow.parameters.run}}"
        assert body["spec"]["parallelism"] == 2
