from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argo_harbor.errors import Finding, Refused, UsageError
from argo_harbor.model.plan import PlanHead, RunPlan, TaskPlan
from argo_harbor.model.platform import Platform
from argo_harbor.model.profile import Profile
from argo_harbor.model.taskset import Origin, Taskset
from argo_harbor.planning.plan import BUILD_SECONDS, plan
from argo_harbor.planning.profiles import CLOSED, default_profile_name
from tests.planning.support import OPEN, SITE, calling, places, plan_of, refused, spec
from tests.support.tasks import make_task, make_taskset, sha

RICH: dict[str, Any] = {
    "environment": {
        "cpus": 2,
        "memory_mb": 1000,
        "env": {"A": "${TEAM}"},
        "healthcheck": {"command": "true"},
    },
    "agent": {"timeout_sec": 30, "user": "agent"},
    "verifier": {"timeout_sec": 10.5, "user": 1000, "collect": [{"command": "c", "user": "collector"}]},
    "artifacts": ["/app/a", {"source": "/app/b", "destination": "b", "exclude": ["*.o"]}],
    "steps": [
        {"name": "one", "agent": {"user": 7}, "artifacts": ["/app/c"]},
        {"name": "two", "verifier": {"environment": {"docker_image": "judge:1"}}},
    ],
}
GRANTING = spec(target={"source": {"name": "oracle"}, "env": {"TEAM": "lit:red"}, "n_attempts": 3})


def suite(count: int = 5) -> list[Any]:
    kinds: list[dict[str, Any]] = [
        {},
        RICH,
        {"verifier": {"environment_mode": "separate"}},
        {"environment": {"docker_image": "ready:1", "network_mode": "no-network"}},
    ]
    return [make_task(f"acme/t{n:03d}", kinds[n % 4], index=n) for n in range(count)]


def test_the_head_says_what_was_asked_and_allowed() -> None:
    request = spec(
        target={
            "source": {"name": "nop"},
            "n_attempts": 4,
            "max_retries": 2,
            "env": {"TEAM": "lit:red"},
        },
        timeout_seconds=500,
        publication={"experiment": "nightly"},
    )
    head = plan(make_taskset(*suite(), total=9), request, platform=SITE, profile=OPEN).head
    assert (head.taskset.name, head.taskset.digest, head.taskset.total) == ("suite", sha("suite"), 9)
    assert (head.n_attempts, head.max_retries, head.infra_retries, head.reward_key) == (4, 2, 1, "reward")
    assert head.publication.experiment == "nightly"
    assert head.profile == OPEN
    assert head.limits.timeout_seconds == 500
    assert [entry.dag_name for entry in head.tasks] == ["t000", "t001", "t002", "t003", "t004"]


@pytest.mark.parametrize(
    ("asked", "label"),
    [
        ("", f"suite@{sha('suite')}"),
        ("terminal-bench", f"terminal-bench@{sha('suite')}"),
        ("terminal-bench@2.0", "terminal-bench@2.0"),
    ],
)
def test_results_count_for_a_dataset_with_a_version(asked: str, label: str) -> None:
    request = spec(publication={"experiment": "nightly", "intake_dataset": asked})
    head = plan(make_taskset(*suite(1), total=9), request, platform=SITE, profile=OPEN).head
    assert head.publication.intake_dataset == label


def test_a_remote_source_is_recorded_and_names_the_dataset() -> None:
    origin = Origin("https://example.org/team/suite@" + "a" * 40, "team/suite", "a" * 40)
    taskset = replace(make_taskset(*suite(1), total=9), origin=origin)
    head = plan(taskset, spec(), platform=SITE, profile=OPEN).head
    assert head.taskset.source == origin.pinned
    assert head.publication.intake_dataset == f"team/suite@{'a' * 40}"


def test_a_task_keeps_its_own_words() -> None:
    part = plan_of(RICH, request=GRANTING).parts[0]
    assert part.users == ("1000", "7", "agent", "collector")
    assert (part.agent_user, part.verifier_user) == ("agent", "1000")
    assert [artifact.source for artifact in part.artifacts] == ["/app/a", "/app/b", "/app/c"]
    assert (part.artifacts[1].destination, part.artifacts[1].exclude) == ("b", ("*.o",))
    assert part.verifier_mode.value == "separate"
    assert [step.verifier_mode.value for step in part.steps] == ["shared", "separate"]


def test_parts_and_head_round_trip() -> None:
    made = plan(make_taskset(*suite()), GRANTING, platform=SITE, profile=OPEN)
    assert PlanHead.from_json(made.head.canonical()) == made.head
    for part, entry in zip(made.parts, made.head.running, strict=True):
        read = TaskPlan.from_json(part.canonical())
        assert read == part
        assert read.canonical() == part.canonical()
        assert entry.part == part.content_digest()
        assert made.part(entry.index) is part


def test_a_plan_without_a_platform_and_profile_is_closed() -> None:
    made = plan(make_taskset(), spec())
    assert made.head.profile == CLOSED
    assert made.head.platform == Platform()
    assert PlanHead.from_json(made.head.canonical()) == made.head


def test_a_profile_that_was_not_loaded() -> None:
    for platform, request in ((Platform(), spec()), (SITE, spec(sandbox={"profile": "mine"}))):
        with pytest.raises(Refused) as caught:
            plan(make_taskset(), request, platform=platform)
        assert caught.value.code == "unknown_profile"
    assert plan(make_taskset(), spec(sandbox={"profile": "closed"}), platform=SITE).head.profile == CLOSED


def test_the_default_profile() -> None:
    assert default_profile_name(Platform()) == "harbor-standard"
    assert default_profile_name(Platform(default_sandbox_profile="mine")) == "mine"
    assert default_profile_name(Platform(built_in=True)) == "closed"


def test_caps_and_deadlines() -> None:
    profile = Profile(name="p", per_run_cap=7, default_timeout_seconds=9000, max_timeout_seconds=8000)
    limits = plan_of(profile=profile).head.limits
    assert (limits.cap, limits.timeout_seconds, limits.build_seconds) == (7, 8000, BUILD_SECONDS)
    request = spec()
    for wish, cap in ((3, 3), (50, 7)):
        execution = request.execution.model_copy(update={"max_concurrent_task_jobs": wish})
        asked = request.model_copy(update={"execution": execution})
        assert plan_of(profile=profile, request=asked).head.limits.cap == cap


@pytest.mark.parametrize(
    ("config", "seconds"),
    [
        ({"environment": {"docker_image": "ready:1", "build_timeout_sec": 5000.0}}, 0),
        ({"environment": {"build_timeout_sec": 5000.5}}, 5001),
        ({"verifier": {"environment": {"build_timeout_sec": 4000.0}}}, 4000),
    ],
)
def test_builds_get_the_longest_time_that_a_task_asks_for(config: dict[str, Any], seconds: int) -> None:
    assert plan_of(config).head.limits.build_seconds == seconds


def test_no_tasks() -> None:
    with pytest.raises(UsageError) as caught:
        plan(Taskset("suite", sha("suite"), (), 3), spec())
    assert caught.value.code == "no_tasks_selected"


def test_a_deployment_is_refused_plainly() -> None:
    found = refused(request=spec(deployment={"image": "model:1"}))
    assert places(found) == [("invalid_spec", "deployment")]
    assert "does not exist yet" in found[0].message


def test_everything_wrong_with_a_request_comes_at_once() -> None:
    request = spec(
        "codex",
        target={"source": {"name": "codex"}, "env": {"A": "host:"}},
        sandbox={"cpus": 99},
        deployment={"image": "model:1"},
    )
    assert {finding.code for finding in refused(request=request)} == {
        "model_required",
        "invalid_spec",
        "resources_exceed_policy",
    }


BAD = {
    "acme/a": {"environment": {"gpus": 1}},
    "acme/b": {"environment": {"cpus": 999}},
    "acme/c": {"environment": {"env": {"X": "${NOPE}"}}},
    "acme/d": {"verifier": {"collect": [{"command": "x", "service": "db"}]}},
    "acme/e": {"artifacts": [{"source": "/x", "service": "web"}]},
}


def mixed() -> Taskset:
    bad = [make_task(name, config, index=n) for n, (name, config) in enumerate(BAD.items())]
    return make_taskset(*bad, make_task("acme/good", index=5))


def test_one_refused_task_refuses_all_and_all_are_named() -> None:
    with pytest.raises(Refused) as caught:
        plan(mixed(), spec(), platform=SITE, profile=OPEN)
    assert [(item.task, item.code) for item in caught.value.items] == [
        ("acme/a", "gpu_unsupported"),
        ("acme/b", "resources_exceed_policy"),
        ("acme/c", "env_not_granted"),
        ("acme/d", "invalid_compose_file"),
        ("acme/e", "invalid_compose_file"),
    ]
    assert caught.value.message == "5 findings in 5 tasks"
    assert caught.value.exit_status == 3
    assert all(item.hint for item in caught.value.items)


def test_skipped_tasks_stand_in_the_plan_with_their_reason() -> None:
    made = plan(mixed(), spec(canary=3), platform=SITE, profile=OPEN, skip_refused=True)
    assert [entry.skipped and entry.skipped.code for entry in made.head.tasks] == [
        "gpu_unsupported",
        "resources_exceed_policy",
        "env_not_granted",
        "invalid_compose_file",
        "invalid_compose_file",
        None,
    ]
    assert all(not entry.dag_name and not entry.part for entry in made.head.tasks[:5])
    assert [part.name for part in made.parts] == ["acme/good"]
    assert made.head.canary == (5,)
    with pytest.raises(KeyError):
        made.part(0)


def test_who_shall_run_the_plan_may_refuse_tasks_too() -> None:
    whole = make_taskset(*(make_task(f"acme/t{n}", index=n) for n in range(3)))
    names = [task.name for task in whole.tasks]
    no = {names[1]: [Finding("local_user_unsupported", "names a user", task=names[1])]}
    with pytest.raises(Refused) as caught:
        plan(whole, spec(), platform=SITE, profile=OPEN, refused=no)
    assert list(caught.value.items) == no[names[1]]
    made = plan(whole, spec(), platform=SITE, profile=OPEN, skip_refused=True, refused=no)
    assert [part.name for part in made.parts] == [names[0], names[2]]
    skipped = made.head.tasks[1].skipped
    assert skipped is not None
    assert (skipped.code, skipped.message) == ("local_user_unsupported", "names a user")


def test_when_every_task_is_refused_there_is_nothing_to_skip_to() -> None:
    taskset = make_taskset(make_task("acme/a", BAD["acme/a"]))
    with pytest.raises(Refused):
        plan(taskset, spec(), platform=SITE, profile=OPEN, skip_refused=True)


def bytes_of(made: RunPlan) -> Iterator[bytes]:
    yield made.head.canonical()
    for part in made.parts:
        yield part.canonical()


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_the_same_request_gives_the_same_bytes(seed: int) -> None:
    """Whatever the folder, the order of tasks, of keys in task.toml and in maps of the request."""
    dice = random.Random(seed)
    variables = {"TEAM": "lit:red", "B": "lit:2", "A": "host:A"}
    request = calling(target={"env": variables})
    expected = plan(make_taskset(*suite(8)), request, platform=SITE, profile=OPEN)
    tasks = [
        make_task(task.name, shuffled(task_config(task), dice), index=task.index, root=Path(f"/tmp/{seed}"))
        for task in suite(8)
    ]
    dice.shuffle(tasks)
    again = plan(
        make_taskset(*tasks),
        calling(target={"env": shuffled(variables, dice)}),
        platform=Platform.from_data(shuffled(SITE.as_data(), dice)),
        profile=OPEN,
    )
    assert list(bytes_of(again)) == list(bytes_of(expected))
    assert again.digest == expected.digest


def task_config(task: Any) -> dict[str, Any]:
    return dict(task.config.model_dump(exclude_unset=True))


def shuffled(data: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    keys = list(data)
    dice.shuffle(keys)
    return {key: shuffled(data[key], dice) if isinstance(data[key], dict) else data[key] for key in keys}
