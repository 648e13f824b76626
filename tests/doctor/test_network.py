"""Whether the fence around runs holds, and lets through what it should."""

from __future__ import annotations

from typing import Any

import pytest

from argo_harbor.doctor.network import fence
from argo_harbor.doctor.result import Result
from argo_harbor.doctor.visit import ROLE_LABEL, Visit
from argo_harbor.workflow.network import base_egress
from tests.doctor.conftest import NAMESPACE, Bench


def verdicts(bench: Bench, seconds: float = 2) -> tuple[Result, Result]:
    visit = Visit(bench.connect(), seconds=seconds)
    policy, openings = fence(visit, bench.platform)
    visit.stop()
    assert not visit.leave()
    return policy, openings


def test_the_fence_is_that_of_every_run_and_is_around_one_pod_only(bench: Bench) -> None:
    visit = Visit(bench.connect(), seconds=2)
    fence(visit, bench.platform)
    (policy,) = [item for item in bench.api.objects.values() if item.get("kind") == "NetworkPolicy"]
    assert policy["spec"]["ingress"] == []
    assert policy["spec"]["egress"] == base_egress(bench.platform, bench.platform.network.pod_cidrs)
    selector = policy["spec"]["podSelector"]["matchLabels"].items()
    inside = [
        item["metadata"]["labels"][ROLE_LABEL]
        for item in bench.api.objects.values()
        if item.get("kind") == "Pod" and selector <= item["metadata"]["labels"].items()
    ]
    assert inside == ["fenced"]
    assert all(
        item["spec"]["automountServiceAccountToken"] is False
        for item in bench.api.objects.values()
        if item.get("kind") == "Pod"
    )


@pytest.mark.parametrize(
    ("passed", "closed_after", "status", "message"),
    [
        (0, 0.0, "ok", "enforced"),
        (2, 1.2, "ok", "enforced, 1.2 s after a pod starts"),
        (14, 7.0, "warning", "enforced, but only 7 s after a pod starts"),
        (24, None, "failed", "a pod behind a policy reaches what the policy closes"),
    ],
)
def test_how_soon_the_fence_closes(
    bench: Bench, passed: int, closed_after: float | None, status: str, message: str
) -> None:
    bench.answers["fenced"] |= {"passed": passed, "closed_after": closed_after}
    policy, openings = verdicts(bench)
    assert (policy.status, policy.message) == (status, message)
    assert openings.status == "ok"


def test_pods_that_never_reach_one_another_tell_nothing_about_fences(bench: Bench) -> None:
    bench.answers["free"] = {"error": "10.244.0.7:8080: timed out"}
    policy, _ = verdicts(bench)
    assert policy.status == "failed"
    assert "fenced or not" in policy.message


@pytest.mark.parametrize(
    ("answer", "key"),
    [
        ({"dns": "kubernetes.default.svc: no answer"}, "network.resolvers"),
        ({"places": {"API server": "timed out", "store": ""}}, "network.api_server"),
        ({"places": {"API server": "", "store": "timed out"}}, "store.endpoint"),
    ],
)
def test_a_fence_that_closes_too_much_names_the_setting(
    bench: Bench, answer: dict[str, Any], key: str
) -> None:
    bench.answers["fenced"] |= answer
    policy, openings = verdicts(bench)
    assert policy.status == "ok"
    assert openings.status == "failed"
    assert key in openings.hint


@pytest.mark.parametrize("role", ["fenced", "free"])
def test_a_pod_that_says_nothing(bench: Bench, role: str) -> None:
    bench.answers[role] = None
    policy, openings = verdicts(bench, seconds=0.5)
    assert policy.status == "failed"
    assert "the probe pod is still Pending" in policy.message
    assert openings.status == ("skipped" if role == "fenced" else "ok")


@pytest.mark.parametrize("status", [{"phase": "Pending"}, {"phase": "Failed"}])
def test_a_target_that_does_not_run(bench: Bench, status: dict[str, Any]) -> None:
    bench.statuses["target"] = status
    policy, openings = verdicts(bench, seconds=0.5)
    assert (policy.status, openings.status) == ("failed", "skipped")
    assert not bench.api.names(f"{NAMESPACE}/pods")
