"""Short ways to plan one task and to see what was refused."""

from __future__ import annotations

from typing import Any

import pytest

from argo_harbor.errors import Finding, Refused
from argo_harbor.model.plan import RunPlan, TaskPlan
from argo_harbor.model.platform import BUILT_IN, Platform
from argo_harbor.model.profile import Profile
from argo_harbor.model.spec import RunSpec
from argo_harbor.planning.plan import plan
from tests.support.tasks import make_task, make_taskset

OPEN = Profile(name="open", hosts=("@public",), shared_verifier="open")
SITE = Platform.from_data(
    {
        "groups": {"python": ["packages.example", "*.files.example"], "debian": ["mirror.example"]},
        "models": {
            "coder": {
                "base_url": "https://llm.example/v1",
                "model": "coder-1",
                "secret": "llm/key",
                "closed_book": True,
            },
            "browsing": {
                "base_url": "https://api.other.example/v1",
                "model": "b",
                "hosts": ["api.other.example"],
            },
        },
    }
)


def spec(agent: str = "oracle", **changes: Any) -> RunSpec:
    """A request; `target`, `verifier` and `sandbox` are merged in, other keys stand at the top."""
    target = {"source": {"name": agent}, **changes.pop("target", {})}
    request = {"target": target, "verifier": changes.pop("verifier", {})}
    return RunSpec.from_data(
        {"spec": request, "execution": {"sandbox": changes.pop("sandbox", {})}, **changes}
    )


def calling(model: str = "coder", agent: str = "codex", **changes: Any) -> RunSpec:
    """A request for an agent that calls a model."""
    source = {"name": agent, "model": {"ref": model}}
    return spec(target={"source": source, **changes.pop("target", {})}, **changes)


def part_of(
    config: dict[str, Any] | None = None,
    *,
    request: RunSpec | None = None,
    profile: Profile = OPEN,
    platform: Platform = SITE,
) -> TaskPlan:
    """The part of a taskset of one task."""
    return plan_of(config, request=request, profile=profile, platform=platform).parts[0]


def plan_of(
    config: dict[str, Any] | None = None,
    *,
    request: RunSpec | None = None,
    profile: Profile | None = OPEN,
    platform: Platform = SITE,
) -> RunPlan:
    taskset = make_taskset(make_task(config=config))
    return plan(taskset, request or spec(), platform=platform, profile=profile)


def refused(
    config: dict[str, Any] | None = None,
    *,
    request: RunSpec | None = None,
    profile: Profile = OPEN,
    platform: Platform = BUILT_IN,
) -> tuple[Finding, ...]:
    """Every finding for a taskset of one task."""
    with pytest.raises(Refused) as caught:
        part_of(config, request=request, profile=profile, platform=platform)
    return caught.value.items


def places(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    """Code and key of each finding."""
    return [(finding.code, finding.key) for finding in findings]
