"""Asks a cluster for what a platform file must say about it, and writes the file's skeleton.

What it cannot know (registry, store, groups, models) stands there as an example to fill in. Every answer may
be forbidden to this user: then its key stays to be filled in by hand, with a comment that says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_address, ip_network
from typing import Any, NamedTuple

from argo_harbor.cluster import paths
from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.errors import ClusterError, Rejected, Unreachable
from argo_harbor.errors import PlatformError
from argo_harbor.install.changes import refusal

type Network = IPv4Network | IPv6Network

_DISCOVERY = "discovery.k8s.io/v1"
_RANGE_OF_SERVICES = re.compile(r"range of valid IPs is ([0-9a-f.:/]+)")


class Found(NamedTuple):
    """What one setting should be, and what to know about it."""

    values: tuple[str, ...]
    comment: str


class Discovered(NamedTuple):
    """Settings of the table `[network]`."""

    api_server: Found
    service_cidrs: Found
    pod_cidrs: Found
    node_cidrs: Found
    resolvers: Found


def discover(cluster: Cluster) -> Discovered:
    """Read what the cluster tells about its addresses. Raises PlatformError when it does not answer."""
    return Discovered(
        api_server=_ask(cluster, _api_server, "the endpoints of the service `kubernetes`"),
        service_cidrs=_ask(cluster, _service_cidrs, "the range of service addresses"),
        pod_cidrs=_ask(cluster, _pod_cidrs, "the ranges of pod addresses"),
        node_cidrs=_ask(cluster, _node_cidrs, "the addresses of nodes"),
        resolvers=_ask(cluster, _resolvers, "the address of the cluster's DNS"),
    )


def skeleton(found: Discovered, namespace: str) -> str:
    """The text of a platform file: what was found, and examples for the rest."""
    network = "\n".join(_setting(key, value) for key, value in found._asdict().items())
    return f"""\
# The platform: what argo-harbor must know about this site.
# Fill in registry, store and groups; then: argo-harbor install --platform THIS_FILE --apply
schema = "platform-1"
namespace = {json.dumps(namespace)}

# Where builds push to and all nodes pull from: host[:port]/path
registry = "registry.invalid/argo-harbor"
# Stands in for Docker Hub when images are built:
# base_image_mirror = "mirror.example.org"

[store]
# An S3 server that pods and you reach; its keys go into the Secret `argo-harbor-store`
endpoint = ""
bucket = "argo-harbor"

[network]
{network}

# Hosts by group, used in profiles as `@name`: where this site gets its packages from
[groups]
# python = ["python.example.org"]
# debian = ["debian.example.org"]
# node = ["node.example.org"]

# Models that agents may call
# [models.NAME]
# base_url = "https://models.example.org/v1"
# model = "NAME"
# secret = "SECRET/KEY"
"""


def _ask(cluster: Cluster, question: Callable[[Cluster], Found], what: str) -> Found:
    try:
        return question(cluster)
    except Unreachable as error:
        raise PlatformError.of([refusal("Cluster", cluster.server, error)], what="object") from error
    except ClusterError:
        return Found((), f"{what}: not allowed to this user, fill in by hand")


def _api_server(cluster: Cluster) -> Found:
    path = paths.grouped(_DISCOVERY, "default", "endpointslices")
    found: set[str] = set()
    for item in cluster.list(path, labels="kubernetes.io/service-name=kubernetes"):
        ports = [port.get("port") for port in item.get("ports") or () if isinstance(port.get("port"), int)]
        for endpoint in item.get("endpoints") or ():
            for address in _addresses(endpoint.get("addresses") or ()):
                host = f"[{address}]" if ":" in address else address
                found |= {f"{host}:{port}" for port in ports}
    return Found(tuple(sorted(found)), "the API server's own addresses, behind its service")


def _service_cidrs(cluster: Cluster) -> Found:
    """From the ServiceCIDR objects of newer clusters; older ones tell when asked for an address that no
    range has."""
    comment = "the range of service addresses"
    try:
        objects = list(cluster.list(paths.cluster_wide("networking.k8s.io/v1", "servicecidrs")))
    except Unreachable:
        raise
    except ClusterError:
        objects = []
    ranges = [text for item in objects for text in (item.get("spec") or {}).get("cidrs") or ()]
    if not ranges:
        body = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"generateName": "argo-harbor-discovery-"},
            "spec": {"clusterIP": "192.0.2.1", "ports": [{"port": 443}]},
        }
        try:
            cluster.create(paths.core("default", "services"), body, dry_run=True)
        except Rejected as refused:
            ranges = _RANGE_OF_SERVICES.findall(refused.message)
    return Found(_texts(_networks(ranges)), comment)


def _pod_cidrs(cluster: Cluster) -> Found:
    networks = [
        network
        for node in cluster.list(paths.cluster_wide("v1", "nodes"))
        for network in _networks((node.get("spec") or {}).get("podCIDRs") or ())
    ]
    if not networks:
        return Found((), "the nodes do not say where pod addresses come from: see the CNI's own settings")
    comment = "covers the nodes of today: widen it to the CNI's whole range if nodes may join"
    return Found(_texts(_covering(networks)), comment)


def _node_cidrs(cluster: Cluster) -> Found:
    addresses = [
        address.get("address", "")
        for node in cluster.list(paths.cluster_wide("v1", "nodes"))
        for address in (node.get("status") or {}).get("addresses") or ()
        if address.get("type") in ("InternalIP", "ExternalIP")
    ]
    return Found(_texts(_networks(_addresses(addresses))), "the nodes of today: widen it if nodes may join")


def _resolvers(cluster: Cluster) -> Found:
    services = cluster.list(paths.core("kube-system", "services"), labels="k8s-app=kube-dns")
    addresses = [text for item in services for text in (item.get("spec") or {}).get("clusterIPs") or ()]
    return Found(tuple(dict.fromkeys(_addresses(addresses))), "the cluster's DNS service")


def _addresses(values: Iterable[object]) -> Iterator[str]:
    """What of this is an address: it goes into a file and from there into policies."""
    for value in values:
        try:
            yield str(ip_address(str(value)))
        except ValueError:
            continue


def _networks(values: Iterable[Any]) -> Iterator[Network]:
    for value in values:
        try:
            yield ip_network(str(value), strict=False)
        except ValueError:
            continue


def _covering(networks: Iterable[Network]) -> Iterator[Network]:
    """The smallest range of each family that holds all of its networks."""
    every = list(networks)
    for version in (4, 6):
        of_version = [network for network in every if network.version == version]
        if not of_version:
            continue
        cover = of_version[0]
        while not all(
            cover[0] <= network[0] and network[-1] <= cover[-1]  # type: ignore[operator]
            for network in of_version
        ):
            cover = cover.supernet()
        yield cover


def _texts(networks: Iterable[Network]) -> tuple[str, ...]:
    every = list(networks)
    four = collapse_addresses(network for network in every if isinstance(network, IPv4Network))
    six = collapse_addresses(network for network in every if isinstance(network, IPv6Network))
    return (*map(str, four), *map(str, six))


def _setting(key: str, found: Found) -> str:
    values = ", ".join(json.dumps(value) for value in found.values)
    lead = "" if found.values else "# "
    return f"# {found.comment}\n{lead}{key} = [{values}]"
