"""The outer fence of a run: two NetworkPolicies that its first two steps create, and that go away with it.

`network-base` closes the run's pods but for DNS, API server and store; `network-internet` opens public
addresses for pods so labelled. What a task may reach in each phase is decided inside the pod; the fence is
what is left if that fails.
"""

from __future__ import annotations

from collections.abc import Iterable

from argo_harbor.model.plan import RunPlan
from argo_harbor.model.platform import Platform
from argo_harbor.workflow import destinations, names
from argo_harbor.workflow.emit import to_yaml
from argo_harbor.workflow.objects import Template

_WORKFLOW = "{{workflow.name}}"


def base_template(plan: RunPlan) -> Template:
    return _template(
        plan,
        names.NETWORK_BASE,
        {
            "podSelector": {"matchLabels": {names.WORKFLOW_LABEL: _WORKFLOW}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [],
            "egress": base_egress(plan.head.platform, closed_ranges(plan)),
        },
    )


def base_egress(platform: Platform, closed: Iterable[str]) -> list[destinations.Rule]:
    """What every pod of a run reaches: DNS, API server and store. `doctor` tries it with pods of its own."""
    return [
        destinations.dns_rule(platform.network),
        *destinations.api_rules(platform.network),
        *destinations.store_rules(platform, closed),
    ]


def internet_template(plan: RunPlan) -> Template:
    """Builds stand among the pods that get out: they fetch base images and packages, and push to the
    registry."""
    platform = plan.head.platform
    sources = [destinations.registry(platform), *destinations.build_sources(platform)]
    inside = dict.fromkeys(place for place in (*sources, destinations.model(plan.head)) if place)
    return _template(
        plan,
        names.NETWORK_INTERNET,
        {
            "podSelector": {
                "matchLabels": {names.WORKFLOW_LABEL: _WORKFLOW},
                "matchExpressions": [
                    {
                        "key": names.NET_LABEL,
                        "operator": "In",
                        "values": [names.NET_INTERNET, names.NET_BUILD],
                    }
                ],
            },
            "policyTypes": ["Egress"],
            "egress": [
                {"to": destinations.everywhere_but(closed_ranges(plan))},
                *(rule for place in inside for rule in destinations.inner_rules(place, platform)),
            ],
        },
    )


def closed_ranges(plan: RunPlan) -> tuple[str, ...]:
    """Ranges that count as no public address: the denied ones and the cluster's own."""
    network = plan.head.platform.network
    return (*plan.head.denied, *network.pod_cidrs, *network.service_cidrs, *network.node_cidrs)


def _template(plan: RunPlan, name: str, spec: dict[str, object]) -> Template:
    manifest = to_yaml(
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {
                "name": f"{_WORKFLOW}-{name.removeprefix('network-')}",
                "labels": {names.PLAN_LABEL: names.plan_label(plan)},
            },
            "spec": spec,
        }
    )
    return {
        "name": name,
        "metadata": {"labels": {names.NET_LABEL: names.NET_SYSTEM}},
        # The pod that applies the policy does so with its executor's token.
        "executor": {"serviceAccountName": names.NETWORK_ACCOUNT},
        "retryStrategy": {"limit": "2", "retryPolicy": "Always"},
        "resource": {"action": "apply", "setOwnerReference": True, "manifest": manifest},
    }
