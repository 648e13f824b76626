from __future__ import annotations

from typing import Any

import pytest

from argo_harbor.model.plan import Amounts
from argo_harbor.model.profile import Profile
from tests.planning.support import part_of, places, refused, spec

PROFILE = Profile(
    name="small", max_cpus=4, max_memory_mb=4096, max_storage_mb=20480, max_disk_mb=16384, limit_factor=1.5
)


def test_a_silent_task() -> None:
    resources = part_of().resources
    assert resources.agent.request == Amounts(cpus=1.0, memory_mb=2048, storage_mb=10240)
    assert resources.agent.limit == Amounts(cpus=3.0, memory_mb=6144, storage_mb=10240)
    assert resources.verifier is None


def test_a_silent_task_gets_no_more_than_the_ceilings() -> None:
    tiny = Profile(name="tiny", max_cpus=0.5, max_memory_mb=512, max_storage_mb=4096, max_disk_mb=2048)
    resources = part_of({"verifier": {"environment": {}}}, profile=tiny).resources
    assert resources.verifier is not None
    for sandbox in (resources.agent, resources.verifier):
        assert sandbox.request == Amounts(cpus=0.5, memory_mb=512, storage_mb=2048)


def test_limits_are_the_request_times_the_factor_but_for_disk() -> None:
    asked = {"cpus": 0.5, "memory_mb": 1001, "storage_mb": 16384}
    resources = part_of({"environment": asked}, profile=PROFILE).resources.agent
    assert resources.request == Amounts(cpus=0.5, memory_mb=1001, storage_mb=16384)
    assert resources.limit == Amounts(cpus=0.75, memory_mb=1502, storage_mb=16384)


@pytest.mark.parametrize(
    ("cpus", "factor", "limit"),
    [
        (0.0001, 3, 0.001),
        (1e-300, 3, 0.001),
        (0.0014, 1, 0.002),
        (0.1, 3, 0.3),
        (1 / 3, 3, 1.0),
        (2, 1.5, 3.0),
    ],
)
def test_a_cpu_limit_is_in_thousandths_and_never_below_the_request(
    cpus: float, factor: float, limit: float
) -> None:
    profile = Profile(name="p", limit_factor=factor)
    for found in (
        part_of({"environment": {"cpus": cpus}}, profile=profile),
        part_of(request=spec(sandbox={"cpus": cpus}), profile=profile),
    ):
        assert found.resources.agent.limit.cpus == limit


def test_flags_replace_the_agents_values_only() -> None:
    request = spec(sandbox={"cpus": 2, "memory_mb": 512, "storage_mb": 1024})
    config = {"environment": {"cpus": 99, "memory_mb": 3000}, "verifier": {"environment": {"cpus": 3}}}
    resources = part_of(config, request=request, profile=PROFILE).resources
    assert resources.agent.request == Amounts(cpus=2.0, memory_mb=512, storage_mb=1024)
    assert resources.verifier is not None
    assert resources.verifier.request == Amounts(cpus=3.0, memory_mb=2048, storage_mb=10240)


def test_a_verifier_without_an_environment_has_the_tasks() -> None:
    config = {"environment": {"cpus": 2}, "verifier": {"environment_mode": "separate"}}
    resources = part_of(config, request=spec(sandbox={"cpus": 1})).resources
    assert resources.verifier is not None
    assert resources.verifier.request.cpus == 2.0


def test_steps_with_separate_verifiers_get_the_largest() -> None:
    steps = [
        {"name": "one", "verifier": {"environment": {"cpus": 4, "memory_mb": 100}}},
        {"name": "two", "verifier": {"environment": {"cpus": 1, "memory_mb": 900}}},
        {"name": "three"},
    ]
    resources = part_of({"steps": steps}).resources
    assert resources.verifier is not None
    assert (resources.verifier.request.cpus, resources.verifier.request.memory_mb) == (4.0, 900)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"cpus": 4.5}, "cpus"),
        ({"memory_mb": 4097}, "memory_mb"),
        ({"storage_mb": 16385}, "storage_mb"),
    ],
)
def test_ceilings_hold_for_task_toml_and_flags_agent_and_verifier(asked: dict[str, Any], field: str) -> None:
    code = "resources_exceed_policy"
    assert places(refused({"environment": asked}, profile=PROFILE)) == [(code, f"environment.{field}")]
    assert places(refused({"verifier": {"environment": asked}}, profile=PROFILE)) == [
        (code, f"verifier.environment.{field}")
    ]
    step = {"name": "one", "verifier": {"environment": asked}}
    assert places(refused({"steps": [step]}, profile=PROFILE)) == [
        (code, f"steps[0].verifier.environment.{field}")
    ]
    flags = refused(request=spec(sandbox=asked), profile=PROFILE)
    assert places(flags) == [(code, f"execution.sandbox.{field}")]
    assert flags[0].task == ""


def test_flags_beyond_any_machine_are_above_the_ceiling_too() -> None:
    asked = {"cpus": 1024.5, "memory_mb": 2**24 + 1, "storage_mb": 10**30}
    wide = Profile(name="wide", max_cpus=1024, max_memory_mb=2**30, max_storage_mb=2**30, max_disk_mb=2**30)
    for profile in (PROFILE, wide):
        found = refused(request=spec(sandbox=asked), profile=profile)
        assert places(found) == [("resources_exceed_policy", f"execution.sandbox.{field}") for field in asked]


def test_a_ceiling_is_said_in_plain_numbers() -> None:
    found = refused({"environment": {"cpus": 5, "memory_mb": 2**24}}, profile=PROFILE)
    assert [item.message for item in found] == [
        "cpus 5 is above 4, the ceiling of profile small",
        "memory_mb 16777216 is above 4096, the ceiling of profile small",
    ]


def test_gpus_need_a_profile_that_has_them() -> None:
    config = {"environment": {"gpus": 2}}
    assert places(refused(config)) == [("gpu_unsupported", "environment.gpus")]
    assert places(refused({"verifier": {"environment": {"gpus": 1}}})) == [
        ("gpu_unsupported", "verifier.environment.gpus")
    ]
    with_gpus = Profile(name="gpus", gpu="vendor.example/gpu", hosts=("@public",))
    assert part_of(config, profile=with_gpus).resources.agent.limit.gpus == 2


def test_machines_that_do_not_exist_here() -> None:
    assert places(refused({"environment": {"os": "windows"}})) == [("invalid_task_config", "environment.os")]
    tpu = {"type": "v6e", "topology": "2x4"}
    assert places(refused({"environment": {"tpu": tpu}})) == [("invalid_task_config", "environment.tpu")]
