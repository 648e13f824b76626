from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from argo_harbor.model.plan import AgentPlan, ModelPlan, RunPlan
from argo_harbor.model.platform import Platform
from argo_harbor.workflow import destinations
from argo_harbor.workflow.destinations import Place
from argo_harbor.workflow.network import Ground, base_template, build_template, fence, internet_template
from tests.support.kubernetes_models import kept
from tests.support.plans import run_plan, task_plan
from tests.workflow.test_goldens import three

Object = dict[str, Any]


def plan_with(**platform: Any) -> RunPlan:
    return run_plan([task_plan(0)], platform=Platform.from_data({"schema": "platform-1", **platform}))


def policy(template: Any) -> Object:
    found: Object = yaml.safe_load(template["resource"]["manifest"])
    return found


def rule_for(spec: Object, cidr: str) -> list[Object]:
    return [rule for rule in spec["egress"] if {"ipBlock": {"cidr": cidr}} in rule.get("to", [])]


@pytest.mark.parametrize("make", [base_template, internet_template, build_template])
@pytest.mark.parametrize("plan", [three(), plan_with()], ids=["site", "built-in"])
def test_policies_are_objects_of_kubernetes(make: Any, plan: RunPlan) -> None:
    template = make(Ground.of(plan))
    document = policy(template)
    assert kept("V1NetworkPolicy", document) == document
    assert template["resource"]["action"] == "apply"
    assert template["resource"]["setOwnerReference"] is True
    assert template["executor"] == {"serviceAccountName": "argo-harbor-network"}


def test_the_base_closes_the_run_but_for_what_pods_need() -> None:
    spec = policy(base_template(Ground.of(three())))["spec"]
    assert spec["podSelector"] == {"matchLabels": {"workflows.argoproj.io/workflow": "{{workflow.name}}"}}
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["ingress"] == []
    dns, *_ = spec["egress"]
    assert dns["ports"] == [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]
    assert {"ipBlock": {"cidr": "192.168.10.2/32"}} in dns["to"]
    [service] = rule_for(spec, "10.96.0.1/32")
    assert service["ports"] == [{"protocol": "TCP", "port": 443}]
    [server] = rule_for(spec, "192.168.10.11/32")
    assert server["ports"] == [{"protocol": "TCP", "port": 6443}]
    store = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "storage"}}}
    assert {"to": [store]} in spec["egress"]
    assert "0.0.0.0/0" not in json.dumps(spec)


def test_the_internet_is_everything_but_denied_and_inner_ranges() -> None:
    spec = policy(internet_template(Ground.of(three())))["spec"]
    assert spec["policyTypes"] == ["Egress"]
    assert spec["podSelector"]["matchExpressions"] == [
        {"key": "argo-harbor/net", "operator": "In", "values": ["internet", "build"]}
    ]
    four, six = (peer["ipBlock"] for peer in spec["egress"][0]["to"])
    assert four["cidr"] == "0.0.0.0/0"
    assert {"169.254.0.0/16", "10.244.0.0/16", "192.168.10.0/24"} <= set(four["except"])
    assert six["cidr"] == "::/0"
    # A mapped range would be refused: to Kubernetes it lies outside ::/0.
    assert not [cidr for cidr in six["except"] if cidr.startswith("::ffff")]
    [model] = rule_for(spec, "10.96.7.7/32")
    assert model["ports"] == [{"protocol": "TCP", "port": 8000}]


def test_a_public_store_opens_its_port() -> None:
    spec = policy(base_template(Ground.of(plan_with(store={"endpoint": "https://s3.example.com"}))))["spec"]
    [rule] = [rule for rule in spec["egress"] if "0.0.0.0/0" in json.dumps(rule)]
    assert rule["ports"] == [{"protocol": "TCP", "port": 443}]
    assert "10.0.0.0/8" in rule["to"][0]["ipBlock"]["except"]


def test_a_registry_inside_the_cluster_opens_to_builds_alone() -> None:
    plan = three()
    registry = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "tools"}}}
    for make in (base_template, internet_template):
        assert "tools" not in json.dumps(policy(make(Ground.of(plan))))
    spec = policy(build_template(Ground.of(plan)))["spec"]
    assert {"to": [registry]} in spec["egress"]
    assert spec["policyTypes"] == ["Egress"]
    assert spec["podSelector"]["matchExpressions"] == [
        {"key": "argo-harbor/net", "operator": "In", "values": ["build"]}
    ]


@pytest.mark.parametrize(
    ("registry", "builds", "steps"),
    [
        ("10.1.2.3:5000/x", True, ["network-base", "network-internet", "network-build"]),
        ("10.1.2.3:5000/x", False, ["network-base", "network-internet"]),
        ("registry.example.com/x", True, ["network-base", "network-internet"]),
    ],
)
def test_a_run_has_no_more_policies_than_it_needs(registry: str, builds: bool, steps: list[str]) -> None:
    assert [
        template["name"] for template in fence(Ground.of(plan_with(registry=registry)), builds=builds)
    ] == steps


def test_a_store_by_address() -> None:
    spec = policy(base_template(Ground.of(plan_with(store={"endpoint": "http://[fd00::7]:9000"}))))["spec"]
    [rule] = rule_for(spec, "fd00::7/128")
    assert rule["ports"] == [{"protocol": "TCP", "port": 9000}]


def test_a_short_name_is_a_service_of_the_namespace() -> None:
    platform = Platform.from_data(
        {"schema": "platform-1", "namespace": "lab", "network": {"service_cidrs": []}}
    )
    assert destinations.inner_rules(Place("minio", 9000), platform) == [
        {"to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "lab"}}}]}
    ]


def test_an_unknown_api_server_is_looked_for_at_its_customary_port() -> None:
    rules = destinations.api_rules(Platform().network)
    assert rules[-1] == {"ports": [{"protocol": "TCP", "port": 6443}]}


def test_hosts_that_a_trial_pod_needs_itself() -> None:
    assert destinations.infrastructure_hosts(three().head.platform) == [
        "$(KUBERNETES_SERVICE_HOST)",
        "192.168.10.11",
        "minio.storage.svc.cluster.local",
        "192.168.10.2",
    ]


@pytest.mark.parametrize("url", ["http://", "nowhere", "http://a b/", "http://{{x}}:9000", "http://-a"])
def test_an_endpoint_without_a_host(url: str) -> None:
    with pytest.raises(ValueError, match="names no host"):
        destinations.store(Platform.from_data({"schema": "platform-1", "store": {"endpoint": url}}))


def test_the_model_of_an_agent_that_calls_one() -> None:
    model = ModelPlan(
        ref="m",
        base_url="https://llm.example.com/v1",
        model="m",
        provider="openai",
        hosts=(),
        closed_book=False,
    )
    plan = run_plan([task_plan(0)], agent=AgentPlan(name="a", calls_model=True, model=model))
    assert destinations.model(plan.head) == Place("llm.example.com", 443)
    assert destinations.model(run_plan([task_plan(0)]).head) is None
