from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from argo_harbor.workflow.limits import MAX_WORKFLOW_BYTES
from argo_harbor.workflow.objects import Workflow
from argo_harbor.workflow.shard import chain
from argo_harbor.workflow.split import split
from argo_harbor.workflow.tasks import PlannedTask, planned_tasks
from tests.support.plans import built, run_plan, task_plan

ONCE = 100_000
"""Bytes of what stands in every part of the test below."""


def numbered(count: int, images: int) -> list[PlannedTask]:
    parts = [task_plan(index, image=built(f"image {index % images}")) for index in range(count)]
    return planned_tasks(run_plan(parts))


@given(
    weights=st.lists(st.integers(1, MAX_WORKFLOW_BYTES // 8), min_size=1, max_size=40),
    images=st.sampled_from((1, 7, 60)),
    first=st.integers(0, 3),
    least=st.integers(1, 3),
)
def test_parts_fit_and_hold_every_task_once(weights: list[int], images: int, first: int, least: int) -> None:
    tasks = numbered(len(weights), images)
    cuts: dict[int, list[int]] = {}

    def assemble(cut: Sequence[PlannedTask], number: int) -> Workflow:
        cuts[number] = [task.index for task in cut]
        # One long word stands in for everything: the size is what counts.
        total = ONCE + sum(weights[task.index] for task in cut)
        return {"metadata": {"name": "x" * total}, "spec": {"entrypoint": "a", "templates": [{"name": "a"}]}}

    parts = split(tasks, assemble, lambda task: weights[task.index], first=first, least=least)
    numbers = range(first, first + len(parts))
    indexes = [index for number in numbers for index in cuts[number]]
    assert sorted(indexes) == list(range(len(weights)))
    assert all(len(part["metadata"]["name"]) <= MAX_WORKFLOW_BYTES for part in parts)
    fewest = -(-sum(weights) // (MAX_WORKFLOW_BYTES - ONCE))
    assert fewest <= len(parts) <= max(2 * fewest + 1, least)


def test_of_nothing_come_no_parts() -> None:
    assert split([], lambda *_: {}, lambda _: 1, first=0) == []


def test_tasks_that_share_an_image_stay_together() -> None:
    cuts: list[list[str]] = []

    def assemble(cut: Sequence[PlannedTask], _: int) -> Workflow:
        cuts.append([task.built[0] for task in cut])
        return {"metadata": {}, "spec": {"entrypoint": "a", "templates": [{"name": "a"}]}}

    split(numbered(12, images=3), assemble, lambda _: 1, first=0, least=3)
    assert [len(set(cut)) for cut in cuts] == [1, 1, 1]


def names(entries: Sequence[object]) -> list[str]:
    return [entry["name"] for entry in entries]  # type: ignore[index]


def test_a_chain_of_very_many_parts_stands_in_chunks() -> None:
    main, *chunks = chain(400, canary_parts=2, first="network-base.Succeeded")
    entries = main["dag"]["tasks"]
    assert names(entries) == ["shard-000", "shard-001", "gate", "chunk-000", "chunk-001", "chunk-002"]
    assert entries[0]["depends"] == "network-base.Succeeded"
    assert entries[3]["depends"] == "gate.Succeeded"
    assert entries[4]["depends"] == "chunk-000.Succeeded || chunk-000.Failed || chunk-000.Errored"
    inner = [entry for chunk in chunks for entry in chunk["dag"]["tasks"]]
    assert names(inner) == [f"shard-{number:03}" for number in range(2, 400)]
    assert "depends" not in chunks[1]["dag"]["tasks"][0]
    assert max(len(each["dag"]["tasks"]) for each in (main, *chunks)) <= 200
