from __future__ import annotations

from typing import Any

import pytest

from argo_harbor.errors import Refused
from argo_harbor.model.plan import AgentPlan, Grant, Grants, ModelPlan, StepPlan
from argo_harbor.model.platform import Platform
from argo_harbor.model.profile import Profile, Toleration
from argo_harbor.workflow.compile import compile_workflow
from argo_harbor.workflow.text import parameter, prose
from tests.support.plans import built, run_plan, task_plan


def findings(**plan: Any) -> list[str]:
    with pytest.raises(Refused) as caught:
        compile_workflow(run_plan([task_plan(0)], **plan))
    return [f"{item.code} {item.key}" for item in caught.value.items]


def grants(*grants: Grant) -> Grants:
    return Grants(target=grants)


@pytest.mark.parametrize(
    ("grant", "finding"),
    [
        (Grant(name="A", kind="host", value="A"), "invalid_spec spec.target.env.A"),
        (Grant(name="A", kind="secret", value="name-only"), "invalid_spec spec.target.env.A"),
        (Grant(name="A", kind="secret", value="{{x}}/a"), "invalid_spec spec.target.env.A"),
        (Grant(name="A{{x}}", kind="secret", value="a/b"), "invalid_spec spec.target.env.A{{x}}"),
    ],
)
def test_grants(grant: Grant, finding: str) -> None:
    assert findings(grants=grants(grant)) == [finding]


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"runtime_class": "{{x}}"}, "runtime_class"),
        ({"gpu": "a b"}, "gpu"),
        ({"node_selector": {"{{x}}": "a"}}, "node_selector"),
        ({"node_selector": {"a": "{{x}}"}}, "node_selector"),
        ({"tolerations": (Toleration(key="{{x}}"),)}, "tolerations"),
        ({"tolerations": (Toleration(key="a", value="b c"),)}, "tolerations"),
    ],
)
def test_profiles(settings: dict[str, Any], key: str) -> None:
    assert findings(profile=Profile(name="lab", **settings)) == [f"invalid_profile {key}"]


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"store": {"endpoint": "nowhere"}}, "store.endpoint"),
        ({"store": {"endpoint": "http://a:port"}}, "store.endpoint"),
        ({"registry": "-"}, "registry"),
        ({"network": {"api_server": ["{{x}}"]}}, "network.api_server"),
        ({"network": {"resolvers": ["ns.example.com"]}}, "network.resolvers"),
        ({"network": {"pod_cidrs": ["10.0.0.0/99"]}}, "network.pod_cidrs"),
        ({"network": {"service_cidrs": ["all"]}}, "network.service_cidrs"),
        ({"network": {"node_cidrs": [""]}}, "network.node_cidrs"),
    ],
)
def test_platforms(settings: dict[str, Any], key: str) -> None:
    platform = Platform.from_data({"schema": "platform-1", **settings})
    assert findings(platform=platform) == [f"invalid_platform {key}"]


@pytest.mark.parametrize(("url", "secret"), [("http://{{x}}/", ""), ("http://a/", "{{x}}")])
def test_models(url: str, secret: str) -> None:
    model = ModelPlan(
        ref="m", base_url=url, model="m", provider="openai", secret=secret, hosts=(), closed_book=False
    )
    agent = AgentPlan(name="a", calls_model=True, model=model)
    assert findings(agent=agent) == ["invalid_platform models"]


def test_what_planning_says_no_cluster_can_run() -> None:
    part = task_plan(0, verifier_image=built("tests"))
    step = StepPlan(name="a", verifier_mode=part.verifier_mode, timeouts=part.timeouts, rules=part.rules)
    with pytest.raises(Refused) as caught:
        compile_workflow(run_plan([part.model_copy(update={"steps": (step,)})]))
    assert caught.value.code == "separate_verifier_steps_unsupported"


def test_all_findings_come_at_once() -> None:
    found = findings(
        grants=grants(Grant(name="A", kind="host", value="A"), Grant(name="B", kind="secret", value="b")),
        profile=Profile(name="lab", gpu="{{x}}", runtime_class="{{y}}"),
    )
    assert len(found) == 4


def test_a_parameter_is_plain() -> None:
    assert parameter("image", "a.b/c:d@e_f-9") == {"name": "image", "value": "a.b/c:d@e_f-9"}
    for text in ("", "{{x}}", "a b", "a\n", "é"):
        with pytest.raises(ValueError, match="must not stand in a workflow"):
            parameter("image", text)


def test_prose() -> None:
    assert prose("a\n {{b}}\t\u2028c") == "a ((b)) c"
    assert len(prose("x" * 999)) == 200
