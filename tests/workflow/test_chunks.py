from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from argo_harbor.workflow.chunks import Cut, cut, families
from argo_harbor.workflow.tasks import PlannedTask, planned_tasks
from tests.support.plans import built, prebuilt, run_plan, task_plan

IMAGES = st.tuples(st.integers(0, 12), st.integers(0, 12))
Pair = tuple[int, int]
"""Numbers of a task's agent and verifier image; 0 for a ready one."""


def tasks_with(images: list[Pair]) -> list[PlannedTask]:
    def image(number: int) -> object:
        return built(f"image {number}") if number else prebuilt()

    parts = [
        task_plan(index, image=image(agent), verifier_image=image(verifier))  # type: ignore[arg-type]
        for index, (agent, verifier) in enumerate(images)
    ]
    return planned_tasks(run_plan(parts))


def check(tasks: list[PlannedTask], found: Cut, capacity: int) -> None:
    assert sorted(task.index for chunk in found.chunks for task in chunk.tasks) == [
        task.index for task in tasks
    ]
    for chunk in found.chunks:
        assert len(chunk.tasks) + len(chunk.builds) <= capacity
        for task in chunk.tasks:
            # Every image is built in the chunk or before it, and nobody waits for an image of others.
            assert set(task.built) - set(chunk.builds) == set(chunk.waits_for)
        assert {key for task in chunk.tasks for key in task.built} == {*chunk.builds, *chunk.waits_for}
        assert set(chunk.waits_for) <= set(found.hoisted)
        assert not set(chunk.builds) & set(found.hoisted)
    builds = [key for chunk in found.chunks for key in chunk.builds]
    assert len(builds) == len(set(builds))


@given(st.lists(IMAGES, min_size=1, max_size=60), st.integers(3, 20))
def test_chunks_hold_every_task_with_its_builds(images: list[Pair], capacity: int) -> None:
    tasks = tasks_with(images)
    check(tasks, cut(tasks, capacity), capacity)


def test_own_images_fill_chunks_in_order() -> None:
    found = cut(tasks_with([(number, 0) for number in range(1, 121)]))
    assert [len(chunk.tasks) for chunk in found.chunks] == [50, 50, 20]
    assert found.hoisted == ()
    assert [chunk.tasks[0].index for chunk in found.chunks] == [0, 50, 100]


def test_an_image_of_many_tasks_is_built_before_its_chunks() -> None:
    tasks = tasks_with([(1, 0)] * 150 + [(2, 0)] * 10 + [(0, 0)] * 5)
    found = cut(tasks)
    assert found.hoisted == tasks[0].built
    assert [(len(chunk.tasks), len(chunk.waits_for)) for chunk in found.chunks] == [
        (100, 1),
        (50, 1),
        (15, 0),
    ]


def test_a_shared_agent_image_with_own_verifier_images() -> None:
    tasks = tasks_with([(1, number) for number in range(2, 152)])
    found = cut(tasks)
    check(tasks, found, 100)
    assert found.hoisted == (tasks[0].built[0],)
    assert len(found.chunks) == 3


def test_a_chain_of_shared_images_comes_apart() -> None:
    tasks = tasks_with([(number, number + 1) for number in range(1, 150)])
    check(tasks, cut(tasks), 100)


@given(st.lists(IMAGES, min_size=1, max_size=30))
def test_families_share_no_image(images: list[Pair]) -> None:
    found = families(tasks_with(images))
    keys = [{key for task in family for key in task.built} for family in found]
    assert sum(len(each) for each in keys) == len(set().union(*keys))
    firsts = [family[0].index for family in found]
    assert firsts == sorted(firsts)
    for family in found:
        assert [task.index for task in family] == sorted(task.index for task in family)
        assert len(family) == 1 or all(task.built for task in family)
