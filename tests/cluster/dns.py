"""The cluster's DNS: CoreDNS in a pod behind the usual service, as NetworkPolicies expect it."""

from __future__ import annotations

import string
from pathlib import Path

from tests.cluster import addresses
from tests.cluster.kubectl import apply, kubectl
from tests.cluster.state import State

_ROLLOUT = ("--namespace", "kube-system", "rollout", "status", "--timeout=90s", "deployment/coredns")
_MANIFEST = Path(__file__).parent / "manifests" / "dns.yaml"


def install(state: State, *, image: str) -> None:
    """Apply the manifests; the pod comes up once the node is there.

    Raises:
        ClusterError: the API server refused.
    """
    text = string.Template(_MANIFEST.read_text()).safe_substitute(
        address=addresses.DNS_SERVICE,
        domain=addresses.CLUSTER_DOMAIN,
        gateway=addresses.GATEWAY,
        image=image,
        address_domain=addresses.ADDRESS_DOMAIN,
        package_domain=addresses.PACKAGE_DOMAIN,
    )
    apply(state, text=text)


def wait(state: State) -> None:
    """Wait until it answers.

    Raises:
        ClusterError: it took too long.
    """
    kubectl(state, *_ROLLOUT)
