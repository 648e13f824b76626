"""The outer fence of a run: NetworkPolicies that its first steps create, and that go away with it.

`network-base` closes the run's pods but for DNS, API server and store; `network-internet` opens public
addresses for pods so labelled; `network-build` opens registries inside the cluster for builds, and for them
alone: whoever reaches one may be able to read and replace the images of every task. What a task may reach in
each phase is decided inside the pod; the fence is what is left if that fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

from argo_harbor.model.build_plan import BuildPlan
from argo_harbor.model.plan import RunPlan
from argo_harbor.model.platform import Platform
from argo_harbor.workflow import destinations, names
from argo_harbor.workflow.emit import to_yaml
from argo_harbor.workflow.objects import Template

_WORKFLOW = "{{workflow.name}}"


class Ground(NamedTuple):
    """What a fence is made of."""

    platform: Platform
    denied: tuple[str, ...]
    """Ranges that no pod reaches, besides the cluster's own."""
    labels: Mapping[str, str]
    """Of the policies."""
    model: destinations.Place | None = None
    """The model that the run's agent calls."""

    @classmethod
    def of(cls, plan: RunPlan) -> Self:
        head = plan.head
        labels = {names.PLAN_LABEL: names.plan_label(plan)}
        return cls(head.platform, head.denied, labels, destinations.model(head))

    @classmethod
    def of_builds(cls, plan: BuildPlan) -> Self:
        return cls(plan.platform, plan.denied, {names.BUILDS_LABEL: names.builds_label(plan)})

    @property
    def closed(self) -> tuple[str, ...]:
        """Ranges that count as no public address: the denied ones and the cluster's own."""
        network = self.platform.network
        return (*self.denied, *network.pod_cidrs, *network.service_cidrs, *network.node_cidrs)


def base_template(ground: Ground) -> Template:
    return _template(
        ground,
        names.NETWORK_BASE,
        {
            "podSelector": {"matchLabels": {names.WORKFLOW_LABEL: _WORKFLOW}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [],
            "egress": base_egress(ground.platform, ground.closed),
        },
    )


def base_egress(platform: Platform, closed: Iterable[str]) -> list[destinations.Rule]:
    """What every pod of a run reaches: DNS, API server and store. `doctor` tries it with pods of its own."""
    return [
        destinations.dns_rule(platform.network),
        *destinations.api_rules(platform.network),
        *destinations.store_rules(platform, closed),
    ]


def fence(ground: Ground, *, builds: bool) -> list[Template]:
    """All templates of a workflow that builds images or does not."""
    inner = _build_rules(ground.platform) if builds else []
    return [base_template(ground), internet_template(ground), *([build_template(ground)] if inner else [])]


def internet_template(ground: Ground) -> Template:
    """Builds stand among the pods that get out: they fetch base images and packages."""
    model = ground.model
    return _template(
        ground,
        names.NETWORK_INTERNET,
        {
            "podSelector": _labelled(names.NET_INTERNET, names.NET_BUILD),
            "policyTypes": ["Egress"],
            "egress": [
                {"to": destinations.everywhere_but(ground.closed)},
                *(destinations.inner_rules(model, ground.platform) if model else ()),
            ],
        },
    )


def build_template(ground: Ground) -> Template:
    """Registries that are no public addresses: builds read from them and push to one."""
    return _template(
        ground,
        names.NETWORK_BUILD,
        {
            "podSelector": _labelled(names.NET_BUILD),
            "policyTypes": ["Egress"],
            "egress": _build_rules(ground.platform),
        },
    )


def _build_rules(platform: Platform) -> list[destinations.Rule]:
    places = dict.fromkeys([destinations.registry(platform), *destinations.build_sources(platform)])
    return [rule for place in places for rule in destinations.inner_rules(place, platform)]


def _labelled(*networks: str) -> dict[str, object]:
    return {
        "matchLabels": {names.WORKFLOW_LABEL: _WORKFLOW},
        "matchExpressions": [{"key": names.NET_LABEL, "operator": "In", "values": list(networks)}],
    }


def _template(ground: Ground, name: str, spec: dict[str, object]) -> Template:
    manifest = to_yaml(
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {
                "name": f"{_WORKFLOW}-{name.removeprefix('network-')}",
                "labels": dict(ground.labels),
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
