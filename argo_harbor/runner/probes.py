"""Tries whether packets leave the pod: the proof that rules are in force, not only written down.

A datagram that a rule drops is refused to its sender at once, and one that may leave is gone at once, so no
probe waits for an answer. All containers of a pod share one network, so the runner's own packets are judged
like the sandbox's.
"""

from __future__ import annotations

import shlex
import socket
from collections.abc import Sequence
from ipaddress import ip_address

from argo_harbor.model.plan import PhaseRules
from argo_harbor.runner.infrastructure import covers
from argo_harbor.sandbox.egress import Policy, is_address

PORT = 9
"""The discard service."""
NOBODY = ("192.0.2.1", "192.88.99.1", "198.51.100.1", "203.0.113.1")
"""Addresses for documents and of a service that is no more: nobody is disturbed where they are not denied."""


def must_fail(policy: Policy) -> tuple[str, ...]:
    """Addresses to which no packet may leave under this policy; empty where it leaves none closed."""
    denied = [rule.target for rule in policy.rules if rule.action == "deny"]
    allowed = [rule.target for rule in policy.rules if rule.action == "allow"]
    if policy.default == "allow":
        return tuple(address for address in NOBODY if covers(denied, address))[:2]
    return tuple(address for address in NOBODY if not covers(allowed, address))[:2]


def must_pass(rules: PhaseRules, addresses: Sequence[str]) -> tuple[str, ...]:
    """Addresses to which packets must leave: one of the infrastructure, and one of the phase if it names
    any."""
    named = [host for host in rules.hosts if is_address(host) and "/" not in host]
    return (*addresses[:1], *named[:1])


def leaves(address: str) -> bool:
    """Whether a packet to this address leaves the pod."""
    family = socket.AF_INET6 if ip_address(address).version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, PORT))
            probe.send(b"")
        except OSError:
            return False
    return True


def probing(addresses: Sequence[str]) -> str:
    """A script that says the same from inside a sandbox, `open` or `closed` for each address; nothing where
    the image has no bash."""
    listed = " ".join(shlex.quote(address) for address in addresses)
    inner = (
        'for a; do if (exec 3<>"/dev/udp/$a/'
        f'{PORT}" && printf x >&3) 2>/dev/null; then echo open; else echo closed; fi; done'
    )
    return f"command -v bash >/dev/null 2>&1 || exit 0\nbash -c {shlex.quote(inner)} probe {listed}\n"
