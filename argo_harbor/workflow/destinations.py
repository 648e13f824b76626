"""Where the pods of a run must get besides what a task may reach: API server, DNS, store, registry, models.

The same places are named twice: as hosts for the egress container of a trial pod, and as peers of
NetworkPolicies, which know addresses and namespaces only. Called by `network`, `sandbox` and `checks`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import urlsplit

from argo_harbor.model.plan import PlanHead
from argo_harbor.model.platform import NetworkSettings, Platform

Rule = Mapping[str, object]
"""One entry of a NetworkPolicy's `egress`."""

_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*")
_SERVICE = re.compile(r"[a-z0-9-]+\.(?P<namespace>[a-z0-9-]+)\.svc(\.cluster\.local)?")
_PORTS = {"http": 80, "https": 443}

CLUSTER_API = "$(KUBERNETES_SERVICE_HOST)"
"""Kubernetes puts the API server's address in place of this when it starts the container."""


class Place(NamedTuple):
    """A server by host name or address, and its port."""

    host: str
    port: int


def store(platform: Platform) -> Place | None:
    """The object store; None when the platform names none. Raises ValueError for an endpoint that is no
    URL."""
    return _of_url(platform.store.endpoint) if platform.store.endpoint else None


def registry(platform: Platform) -> Place:
    """Raises ValueError for a registry whose host is none."""
    return _of_url(f"https://{platform.registry}")


def build_sources(platform: Platform) -> list[Place]:
    """Registries that builds may read besides public ones. Raises ValueError for one whose host is none."""
    mirror = [f"https://{platform.base_image_mirror}"] if platform.base_image_mirror else []
    plain = [f"http://{host}" for host in platform.insecure_registries]
    return [_of_url(url) for url in (*mirror, *plain)]


def model(head: PlanHead) -> Place | None:
    """The model that the agent calls, if any. Raises ValueError for a base URL without a host."""
    return _of_url(head.agent.model.base_url) if head.agent.model else None


def api_servers(network: NetworkSettings) -> list[Place]:
    """The API server's own addresses, as packets have them behind its service. Raises ValueError."""
    return [_of_url(f"https://{text}") for text in network.api_server]


def infrastructure_hosts(platform: Platform) -> list[str]:
    """What the pod's own containers need in every phase, as targets of the egress container.

    The resolvers of the pod itself are open anyway.
    """
    places = [*api_servers(platform.network), store(platform)]
    hosts = [CLUSTER_API, *(place.host for place in places if place), *platform.network.resolvers]
    return list(dict.fromkeys(hosts))


def dns_rule(network: NetworkSettings) -> Rule:
    cluster = {"namespaceSelector": {}, "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}}}
    return {
        "to": [cluster, *(_block(address) for address in network.resolvers)],
        "ports": [_port(53, "UDP"), _port(53)],
    }


def api_rules(network: NetworkSettings) -> list[Rule]:
    """Some CNIs look at packets before the service's address is translated, some after: both are opened.

    A platform that does not say where its API server is gets the customary port; `doctor` asks for the rest.
    """
    # The API server's own service has the first address of the range.
    first = [str(ip_network(cidr, strict=False)[0] + 1) for cidr in network.service_cidrs]
    service: list[Rule] = [{"to": [_block(address)], "ports": [_port(443)]} for address in first]
    servers = api_servers(network)
    behind: list[Rule] = [{"to": [_block(place.host)], "ports": [_port(place.port)]} for place in servers]
    return [*service, *(behind or [{"ports": [_port(6443)]}])]


def inner_rules(place: Place, platform: Platform) -> list[Rule]:
    """Rules that let packets through to an address or a service of the cluster; none for a public name."""
    ports = [_port(place.port)]
    if _is_address(place.host):
        return [{"to": [_block(place.host)], "ports": ports}]
    service = _SERVICE.fullmatch(place.host)
    if not service and "." in place.host:
        return []
    namespace = service["namespace"] if service else platform.namespace
    # A service's port need not be the port of its pods, which is what most CNIs get to see.
    labels = {"kubernetes.io/metadata.name": namespace}
    pods: Rule = {"to": [{"namespaceSelector": {"matchLabels": labels}}]}
    before = [_block(cidr) for cidr in platform.network.service_cidrs]
    return [pods, {"to": before, "ports": ports}] if before else [pods]


def store_rules(platform: Platform, closed: Iterable[str]) -> list[Rule]:
    """Rules for the store; for a public name, whose addresses nobody knows, its port is open everywhere."""
    place = store(platform)
    if place is None:
        return []
    public: Rule = {"to": everywhere_but(closed), "ports": [_port(place.port)]}
    return inner_rules(place, platform) or [public]


def everywhere_but(closed: Iterable[str]) -> list[Mapping[str, object]]:
    """Peers for all addresses outside the closed ranges, both families."""
    networks = [ip_network(text, strict=False) for text in dict.fromkeys(closed)]
    four = [str(net) for net in networks if isinstance(net, IPv4Network) and net.prefixlen]
    # To Kubernetes a range of mapped IPv4 addresses is no part of ::/0, and no packet carries one.
    six = [
        str(net)
        for net in networks
        if isinstance(net, IPv6Network) and net.prefixlen and not net[0].ipv4_mapped
    ]
    return [
        {"ipBlock": {"cidr": "0.0.0.0/0", "except": four}},
        {"ipBlock": {"cidr": "::/0", "except": six}},
    ]


def _of_url(url: str) -> Place:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not (_HOST_NAME.fullmatch(host) or _is_address(host)):
        raise ValueError(f"{url!r} names no host")
    return Place(host, parts.port or _PORTS.get(parts.scheme, 443))


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _block(address: str) -> Mapping[str, object]:
    return {"ipBlock": {"cidr": str(ip_network(address, strict=False))}}


def _port(number: int, protocol: str = "TCP") -> Mapping[str, object]:
    return {"protocol": protocol, "port": number}
