from __future__ import annotations

from typing import Any

import pytest

from argo_harbor.model.plan import RunPlan
from argo_harbor.model.profile import Profile
from argo_harbor.planning.local import local_findings
from tests.planning.support import OPEN, calling, plan_of, spec

CLOSED = Profile(name="closed")
SOME = Profile(name="some", hosts=("a.example",))


def codes(plan: RunPlan, **options: Any) -> list[str]:
    return [finding.code for finding in local_findings(plan, **options)]


@pytest.mark.parametrize("agent", ["oracle", "nop"])
@pytest.mark.parametrize("mode", ["public", "no-network"])
def test_what_runs_here(agent: str, mode: str) -> None:
    assert codes(plan_of({"environment": {"network_mode": mode}}, request=spec(agent), profile=CLOSED)) == []


def test_an_agent_that_calls_a_model_or_comes_from_an_image() -> None:
    isolated = {"environment": {"network_mode": "no-network"}}
    found = local_findings(plan_of(isolated, request=calling(), profile=CLOSED))
    assert [(item.code, item.key) for item in found] == [
        ("local_agent_unsupported", "spec.target.source.name"),
        ("local_network_unenforceable", ""),
    ]
    own = spec(target={"source": {"name": "oracle", "import_path": "a:B"}})
    assert codes(plan_of(request=own, profile=CLOSED)) == ["local_agent_unsupported"]


def test_a_network_that_is_public_throughout_needs_a_word() -> None:
    plan = plan_of(profile=OPEN)
    found = local_findings(plan)
    assert [(item.code, item.task, item.file) for item in found] == [
        ("local_network_unenforceable", "acme/hello", "hello/task.toml")
    ]
    assert "--allow-unfenced-network" in found[0].hint
    assert codes(plan, allow_unfenced_network=True) == []
    steps = plan_of({"steps": [{"name": "one"}, {"name": "two"}]}, profile=OPEN)
    assert codes(steps, allow_unfenced_network=True) == []


@pytest.mark.parametrize(
    ("config", "profile"),
    [
        ({"environment": {"network_mode": "allowlist", "allowed_hosts": ["a.example"]}}, SOME),
        ({}, SOME),
        ({"agent": {"network_mode": "no-network"}}, OPEN),
        ({"verifier": {"network_mode": "no-network"}}, OPEN),
        ({"steps": [{"name": "one"}, {"name": "two", "agent": {"network_mode": "no-network"}}]}, OPEN),
    ],
)
def test_hosts_and_phases_that_differ_are_refused_in_any_case(
    config: dict[str, Any], profile: Profile
) -> None:
    plan = plan_of(config, profile=profile)
    assert codes(plan, allow_unfenced_network=True) == ["local_network_unenforceable"]


def test_users_other_than_root() -> None:
    named: dict[str, Any] = {"agent": {"user": 0}, "verifier": {"user": "root"}}
    assert codes(plan_of(named, profile=CLOSED)) == []
    named["verifier"]["collect"] = [{"command": "x", "user": "nobody"}]
    named["steps"] = [{"name": "one", "agent": {"user": 1000}}]
    found = local_findings(plan_of(named, profile=CLOSED))
    assert [item.code for item in found] == ["local_user_unsupported"] * 2
    assert "1000" in found[0].message
    assert "nobody" in found[1].message


def test_variables_that_exist_only_in_a_cluster() -> None:
    env = {"A": "secret:s/k", "B": "runtime:POD", "C": "host:HOME_TOWN", "D": "lit:x"}
    request = spec(target={"source": {"name": "oracle"}, "env": env}, verifier={"env": {"A": "secret:s/k"}})
    found = local_findings(plan_of(request=request, profile=CLOSED))
    assert [(item.code, item.key) for item in found] == [
        ("local_env_unsupported", "spec.target.env.A"),
        ("local_env_unsupported", "spec.target.env.B"),
        ("local_env_unsupported", "spec.verifier.env.A"),
    ]
