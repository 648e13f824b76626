"""From the plan's rules of a phase to the whole policy of a pod: denied ranges, infrastructure, the phase.

The pod's own containers need the API server, the store and the resolvers in every phase. These lie in ranges
that are denied to everybody, so exactly their addresses are taken out of those ranges. Pure, but for asking
the resolver.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_address, ip_network

from argo_harbor.model.plan import PhaseRules, PlanHead
from argo_harbor.model.platform import Platform
from argo_harbor.sandbox.egress import Policy, Rule, is_address
from argo_harbor.workflow.destinations import CLUSTER_API, infrastructure_hosts

type Range = IPv4Network | IPv6Network

API_ENV = "KUBERNETES_SERVICE_HOST"


def pod_hosts(planned: Platform, present: Platform, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Names and addresses that the pod itself needs, by the plan's platform and by the pod's own.

    Raises ValueError for a platform with an endpoint that names no host.
    """
    hosts = [*infrastructure_hosts(planned), *infrastructure_hosts(present)]
    server = environ.get(API_ENV, "")
    known = [server if host == CLUSTER_API else host for host in hosts]
    return tuple(dict.fromkeys(host for host in known if host))


def resolve(hosts: Iterable[str]) -> tuple[str, ...]:
    """The addresses of these hosts, sorted; a name that is not found has none."""
    found: set[str] = set()
    for host in hosts:
        if is_address(host):
            found.add(str(ip_address(host)))
            continue
        try:
            answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError:
            continue
        found |= {str(answer[4][0]).partition("%")[0] for answer in answers}
    return tuple(sorted(found))


def pod_denied(head: PlanHead) -> tuple[str, ...]:
    """The denied ranges of the plan and the cluster's own, except where the platform opens them."""
    network = head.platform.network
    opened = [_range(text) for text in head.platform.undeny]
    cluster = (*network.pod_cidrs, *network.service_cidrs, *network.node_cidrs)
    closed = [text for text in cluster if not any(_within(_range(text), wider) for wider in opened)]
    return tuple(dict.fromkeys((*head.denied, *closed)))


def without(ranges: Iterable[str], addresses: Iterable[str]) -> tuple[str, ...]:
    """These ranges without these addresses, as few ranges as that takes, sorted."""
    left = [each for each in map(_range, ranges) if not _is_mapped(each)]
    for address in map(_range, addresses):
        cut: list[Range] = []
        for each in left:
            cut += _cut(each, address) if _within(address, each) else [each]
        left = cut
    four = collapse_addresses(each for each in left if isinstance(each, IPv4Network))
    six = collapse_addresses(each for each in left if isinstance(each, IPv6Network))
    return (*map(str, four), *map(str, six))


def phase_policy(
    rules: PhaseRules, *, denied: Iterable[str], hosts: Iterable[str], addresses: Iterable[str]
) -> Policy:
    """The whole policy of a phase. `hosts` are the infrastructure's, `addresses` what they resolve to."""
    own = tuple(addresses)
    needed = [Rule("allow", host) for host in dict.fromkeys((*hosts, *own))]
    if rules.mode == "none":
        return Policy("deny", tuple(needed))
    closed = [Rule("deny", text) for text in without(denied, own)]
    opened = [Rule("allow", host) for host in rules.hosts]
    return Policy("allow" if rules.mode == "public" else "deny", (*closed, *needed, *opened))


def covers(ranges: Iterable[str], address: str) -> bool:
    """Whether an address lies in one of the ranges; names among them cover none."""
    one = _range(address)
    return any(_within(one, _range(text)) for text in ranges if is_address(text))


def _range(text: str) -> Range:
    return ip_network(text, strict=False)


def _within(inner: Range, outer: Range) -> bool:
    return inner.version == outer.version and inner.subnet_of(outer)  # type: ignore[arg-type]


def _cut(whole: Range, part: Range) -> list[Range]:
    return list(whole.address_exclude(part))  # type: ignore[arg-type]


def _is_mapped(each: Range) -> bool:
    # No packet carries such an address, and some programs read the range as all of IPv4.
    return isinstance(each, IPv6Network) and each[0].ipv4_mapped is not None
