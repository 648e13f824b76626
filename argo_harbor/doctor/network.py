"""Whether the CNI enforces NetworkPolicies, and lets through what the policy of every run opens.

A pod behind that policy must not reach a target that a pod without a policy does reach. All targets are
addresses of the cluster itself or named by the platform file.
"""

from __future__ import annotations

from argo_harbor.cluster.client import Json
from argo_harbor.doctor import pods
from argo_harbor.doctor.result import Result, failed, ok, skipped, warning
from argo_harbor.doctor.visit import Visit, pod_of
from argo_harbor.model.platform import Platform
from argo_harbor.workflow import destinations
from argo_harbor.workflow.network import base_egress

POLICY = "network policy"
OPEN = "policy openings"

_FENCED = "fenced"
# Before its sandbox starts a trial pod pulls images and sets egress up; a fence may take that long to close.
_LATE_SECONDS = 3.0


def fence(visit: Visit, platform: Platform) -> list[Result]:
    """Raises: ClusterError, Stopped."""
    visit.make("networkpolicies", _policy(visit, platform))
    pull = pods.pull_secrets(platform)
    visit.make("pods", pod_of(visit, "target", [pods.probe(platform, "serve")], imagePullSecrets=pull))
    target = _address(visit)
    if not target:
        result = pods.no_answer(POLICY, visit, visit.pod(visit.name("target")))
        return [result, skipped(OPEN, "no pod could try them")]
    question = {"target": target}
    for role, name, asked in (
        ("free", "connect", question),
        (_FENCED, "fenced", {**question, "name": "kubernetes.default.svc", "places": _places(platform)}),
    ):
        container = pods.probe(platform, name, asked)
        visit.make("pods", pod_of(visit, role, [container], imagePullSecrets=pull))
    free = pods.ended(visit, visit.name("free"))
    fenced = pods.ended(visit, visit.name(_FENCED))
    said = pods.answer(fenced)
    if said is None:
        return [pods.no_answer(POLICY, visit, fenced), skipped(OPEN, "no pod could try them")]
    reached = pods.answer(free)
    if reached is None:
        return [pods.no_answer(POLICY, visit, free), _openings(said)]
    return [_verdict(said, reached), _openings(said)]


def _verdict(said: Json, reached: Json) -> Result:
    if reached["error"]:
        cure = "let pods of the namespace reach one another, or see which policy closes it"
        return failed(POLICY, f"no pod reaches another, fenced or not: {reached['error']}", cure)
    if said["closed_after"] is None:
        cure = "install a CNI that enforces NetworkPolicy (Calico, Cilium, kube-router, …)"
        return failed(POLICY, "a pod behind a policy reaches what the policy closes", cure)
    if said["passed"] and said["closed_after"] > _LATE_SECONDS:
        return warning(
            POLICY,
            f"enforced, but only {said['closed_after']:.0f} s after a pod starts",
            "have the CNI set policies up before pods start; until then egress alone closes sandboxes",
        )
    late = f", {said['closed_after']:.1f} s after a pod starts" if said["passed"] else ""
    return ok(POLICY, f"enforced{late}")


def _openings(said: Json) -> Result:
    """A policy that closes too much: pods would then never report or find their store."""
    closed = [("DNS", said["dns"], "network.resolvers (see --discover)")]
    closed += [
        (name, error, "network.api_server and service_cidrs (see --discover)" if name == "API server" else "")
        for name, error in said["places"].items()
    ]
    wrong = [(name, error, keys) for name, error, keys in closed if error]
    if not wrong:
        return ok(OPEN, f"{', '.join(name for name, _, _ in closed)} are reached")
    keys = next((keys for _, _, keys in wrong if keys), "")
    told = "; ".join(f"{name} is not reached: {error}" for name, error, _ in wrong)
    cure = f"correct {keys} in the platform file" if keys else "correct store.endpoint in the platform file"
    return failed(OPEN, told, cure)


def _places(platform: Platform) -> dict[str, tuple[str, int]]:
    # Kubernetes puts the variables of the pod in place of these.
    places = {"API server": (destinations.CLUSTER_API, 443)}
    store = destinations.store(platform)
    return {**places, "store": (store.host, store.port)} if store else places


def _policy(visit: Visit, platform: Platform) -> Json:
    network = platform.network
    closed = (*network.pod_cidrs, *network.service_cidrs, *network.node_cidrs)
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": visit.name("fence"),
            "namespace": visit.cluster.namespace,
            "labels": visit.labels("fence"),
        },
        "spec": {
            "podSelector": {"matchLabels": visit.labels(_FENCED)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [],
            "egress": base_egress(platform, closed),
        },
    }


def _address(visit: Visit) -> str:
    """Where the target listens; empty when it does not come to run."""
    while True:
        pod = visit.pod(visit.name("target"))
        if pod and pod.phase == "Running":
            return str((pod.data.get("status") or {}).get("podIP") or "")
        if (pod and (pod.pull_errors() or pod.phase == "Failed")) or not visit.wait():
            return ""
