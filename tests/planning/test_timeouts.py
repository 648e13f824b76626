from __future__ import annotations

from typing import Any

import pytest

from argo_harbor.model.plan import PhaseTimeouts
from argo_harbor.model.profile import Profile
from argo_harbor.planning.timeouts import TRANSFER_SECONDS
from tests.planning.support import calling, part_of, places, refused, spec

PROFILE = Profile(name="p", start_timeout_seconds=100, agent_timeout_seconds=77)


def times(**given: float) -> PhaseTimeouts:
    values = {
        "start": 100.0,
        "healthcheck": 0.0,
        "setup": 360.0,
        "agent": 77.0,
        "verifier": 600.0,
        "collect": 0.0,
        "transfer": TRANSFER_SECONDS,
    }
    return PhaseTimeouts(**(values | given))


def test_a_silent_task_gets_the_profiles_and_harbors_times() -> None:
    part = part_of(profile=PROFILE)
    assert part.timeouts == times()
    assert part.outer_seconds == 100 + 360 + 77 + 600 + TRANSFER_SECONDS
    assert part.verifier_outer_seconds == 0


def test_the_tasks_own_times_and_the_sum_rounded_up() -> None:
    config: dict[str, Any] = {
        "agent": {"timeout_sec": 10.25},
        "verifier": {
            "timeout_sec": 20.5,
            "collect": [{"command": "a"}, {"command": "b", "timeout_sec": 5.0}],
        },
    }
    part = part_of(config, profile=PROFILE)
    assert part.timeouts == times(agent=10.25, verifier=20.5, collect=65.0)
    assert part.outer_seconds == 100 + 360 + 10 + 20 + 65 + TRANSFER_SECONDS + 1


@pytest.mark.parametrize(
    ("check", "seconds"),
    [
        ({}, 3 * 30 + 2 * 5),
        ({"retries": 1, "timeout_sec": 7.0}, 7),
        ({"retries": 0, "timeout_sec": 7.0}, 7),
        (
            {"retries": 2, "timeout_sec": 4.0, "interval_sec": 3.0, "start_period_sec": 50.0},
            50 + 4 + 5 + 8 + 3,
        ),
    ],
)
def test_a_healthcheck_is_bounded(check: dict[str, Any], seconds: float) -> None:
    config = {"environment": {"healthcheck": {"command": "true", **check}}}
    assert part_of(config, profile=PROFILE).timeouts.healthcheck == seconds


def test_setup_is_the_agents_or_the_requests() -> None:
    assert part_of(request=calling(agent="hermes")).timeouts.setup == 1200.0
    assert part_of(request=spec(target={"setup_timeout_seconds": 5})).timeouts.setup == 5.0


def test_a_separate_verifier_has_a_deadline_of_its_own() -> None:
    part = part_of({"verifier": {"environment_mode": "separate", "timeout_sec": 50.0}}, profile=PROFILE)
    assert part.verifier_outer_seconds == 100 + 50 + TRANSFER_SECONDS


def test_steps_add_up_and_a_step_without_a_verifier_table_has_harbors_default() -> None:
    config: dict[str, Any] = {
        "agent": {"timeout_sec": 40.0},
        "verifier": {"timeout_sec": 5.0, "collect": [{"command": "a", "timeout_sec": 1.0}]},
        "environment": {"healthcheck": {"command": "true", "retries": 1, "timeout_sec": 2.0}},
        "steps": [
            {"name": "one", "healthcheck": {"command": "true", "retries": 1, "timeout_sec": 3.0}},
            {
                "name": "two",
                "agent": {"timeout_sec": 7.0},
                "verifier": {
                    "timeout_sec": 9.0,
                    "environment_mode": "separate",
                    "collect": [{"command": "b", "timeout_sec": 4.0}],
                },
            },
        ],
    }
    part = part_of(config, profile=PROFILE)
    one, two = (step.timeouts for step in part.steps)
    assert one == times(agent=40.0, healthcheck=5.0, collect=1.0)
    assert two == times(agent=7.0, setup=0.0, verifier=9.0, collect=5.0)
    assert part.timeouts == PhaseTimeouts(
        **{name: getattr(one, name) + getattr(two, name) for name in PhaseTimeouts.model_fields}
    )
    assert part.outer_seconds == sum(part.timeouts.model_dump().values())
    assert part.verifier_outer_seconds == 0


def test_longer_than_the_longest_run_is_refused() -> None:
    short = Profile(name="short", max_timeout_seconds=2000, default_timeout_seconds=1000)
    assert places(refused({"agent": {"timeout_sec": 1999.0}}, profile=short)) == [
        ("resources_exceed_policy", "agent.timeout_sec")
    ]
    config = {"agent": {"timeout_sec": 1.0}, "verifier": {"timeout_sec": 1.0}}
    assert places(
        refused({**config, "environment": {"build_timeout_sec": 2001.0}}, profile=short, request=spec())
    ) == [("resources_exceed_policy", "environment.build_timeout_sec")]
    assert places(refused(config, profile=short, request=spec(timeout_seconds=2001))) == [
        ("resources_exceed_policy", "timeout_seconds")
    ]
