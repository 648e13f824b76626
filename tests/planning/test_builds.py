"""The images of a taskset, without a run."""

from __future__ import annotations

import pytest

from argo_harbor.errors import Finding, Refused, UsageError
from argo_harbor.model.build import BuildInputs
from argo_harbor.model.build_plan import BuildPlan
from argo_harbor.model.taskset import ImageSource, Task, Taskset
from argo_harbor.planning.builds import BUILD_SECONDS, BUILDS_AT_ONCE, plan_builds
from argo_harbor.planning.plan import plan
from tests.planning.support import OPEN, SITE, spec
from tests.support.tasks import make_task, make_taskset


def builds_of(*tasks: Task, cap: int = BUILDS_AT_ONCE, inputs: BuildInputs | None = None) -> BuildPlan:
    return plan_builds(make_taskset(*tasks), platform=SITE, profile=OPEN, cap=cap, inputs=inputs)


def test_each_image_is_planned_once_and_names_all_its_tasks() -> None:
    tasks = [make_task(f"acme/t{n}", index=n, environment="same" if n < 2 else "other") for n in range(3)]
    found = builds_of(*tasks, cap=3)
    assert [each.tasks for each in found.images] == [("acme/t0", "acme/t1"), ("acme/t2",)]
    assert (found.images[0].task, found.images[0].digest) == ("acme/t0", tasks[0].digest)
    assert (found.cap, found.taskset) == (3, make_taskset(*tasks).ref)


def test_the_images_are_those_of_a_run() -> None:
    judge = {"verifier": {"environment": {"cpus": 2}}}
    steps = {"steps": [{"name": "one", "verifier": {"environment": {"cpus": 1}}}, {"name": "two"}]}
    tasks = [make_task("acme/a"), make_task("acme/b", judge, index=1), make_task("acme/c", steps, index=2)]
    made = plan(make_taskset(*tasks), spec(), platform=SITE, profile=OPEN)
    wanted = {image.key: image for part in made.parts for image in part.sides.values()}
    assert {each.image.key: each.image for each in builds_of(*tasks).images} == wanted


def test_a_verifier_of_its_own_is_an_image_besides() -> None:
    judge = ImageSource(kind="dockerfile", context="tests", environment_digest="b" * 64)
    task = make_task("acme/a", {"verifier": {"environment": {"cpus": 2}}})
    found = builds_of(
        Task(**{name: getattr(task, name) for name in task.__slots__} | {"verifier_image": judge})
    )
    assert [(each.side, each.image.context) for each in found.images] == [
        ("agent", "environment"),
        ("verifier", "tests"),
    ]


def test_prebuilt_images_are_nothing_to_build() -> None:
    assert builds_of(make_task("a", {"environment": {"docker_image": "a:1"}})).images == ()


def test_the_longest_build_that_a_task_allows_counts() -> None:
    assert builds_of(make_task()).build_seconds == BUILD_SECONDS
    slow = make_task("acme/slow", {"environment": {"build_timeout_sec": 9000.5}})
    assert builds_of(slow).build_seconds == 9001


def test_every_task_without_an_image_is_told_at_once() -> None:
    broken = ImageSource(kind="prebuilt", reference="two words")
    needy = ImageSource(kind="dockerfile", context="environment", secrets=("k",), required_secrets=("k",))
    tasks = [make_task("acme/a", agent_image=broken), make_task("acme/b", index=1, agent_image=needy)]
    for skip in (False, True):  # there is nothing to skip to
        with pytest.raises(Refused) as refused:
            plan_builds(make_taskset(*tasks), platform=SITE, profile=OPEN, skip_refused=skip)
        assert [(item.task, item.code) for item in refused.value.items] == [
            ("acme/a", "invalid_task_config"),
            ("acme/b", "env_not_granted"),
        ]


def test_a_refused_task_can_be_left_out_and_shares_no_image_with_the_others() -> None:
    judge = ImageSource(
        kind="dockerfile",
        context="tests",
        environment_digest="b" * 64,
        secrets=("k",),
        required_secrets=("k",),
    )
    broken = make_task("acme/a", {"verifier": {"environment": {"cpus": 2}}}, environment="same")
    broken = Task(**{name: getattr(broken, name) for name in broken.__slots__} | {"verifier_image": judge})
    suite = make_taskset(broken, make_task("acme/b", index=1, environment="same"))
    found = plan_builds(suite, platform=SITE, profile=OPEN, skip_refused=True)
    assert [(name, why.code) for name, why in found.skipped.items()] == [("acme/a", "env_not_granted")]
    assert [(each.task, each.tasks) for each in found.images] == [("acme/b", ("acme/b",))]
    more = {"acme/b": [Finding("preview_unsupported", "no", task="acme/b")]}
    with pytest.raises(Refused) as refused:
        plan_builds(suite, platform=SITE, profile=OPEN, skip_refused=True, refused=more)
    assert [item.code for item in refused.value.items] == ["env_not_granted", "preview_unsupported"]
    assert BuildPlan.from_json(found.canonical()) == found


def test_broken_values_and_empty_selections_are_refused() -> None:
    with pytest.raises(Refused, match="stands in the image"):
        builds_of(make_task(), inputs=BuildInputs(args={"A": "secret:x/y"}))
    empty = Taskset("suite", "a" * 64, (), 1)
    with pytest.raises(UsageError):
        plan_builds(empty, platform=SITE, profile=OPEN)


def test_a_plan_can_be_narrowed_to_some_images() -> None:
    whole = builds_of(make_task("acme/a"), make_task("acme/b", index=1))
    key = whole.images[1].image.key
    part = whole.only(frozenset({key}))
    assert list(part.by_key) == [key]
    assert part.content_digest() != whole.content_digest()
    assert BuildPlan.from_json(part.canonical()) == part
