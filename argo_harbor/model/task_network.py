"""Hosts as task.toml, profiles and the platform file name them: checked and in one spelling.

An entry is a host name, a leading-wildcard host (`*.example.com`), an IP address or a strict CIDR range. The
same rules as Harbor's, except that a label may not end in a newline, which Harbor's pattern lets through.
"""

import re
from collections.abc import Iterable
from ipaddress import ip_address, ip_network

_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_NOT_A_URL = "must be a host name, an IP address or a CIDR range, not a URL, port or path"


def normalize_hosts(hosts: Iterable[str]) -> list[str]:
    """Every host in lower case, without a trailing dot, addresses and ranges compressed; order kept.

    Raises ValueError naming the first entry that is no host.
    """
    return [normalize_host(host) for host in hosts]


def normalize_host(entry: str) -> str:
    """One entry of an allowlist. Raises ValueError when it is no host."""
    host = entry.strip().lower().rstrip(".")
    if not host:
        raise ValueError("an allowed host must not be empty")
    if "/" in host or ":" in host:
        return _address(host, entry)
    name = host[2:] if host.startswith("*.") else host
    if "*" in name:
        raise ValueError(f"{entry!r}: a wildcard is only allowed as a leading '*.'")
    if not all(_LABEL.fullmatch(label) for label in name.split(".")):
        raise ValueError(f"{entry!r} {_NOT_A_URL}")
    if name is not host and _is_address(name):
        raise ValueError(f"{entry!r}: a wildcard must name a host, not an address")
    return host


def check_policy(network_mode: str | None, allowed_hosts: list[str] | None) -> None:
    """Raises ValueError when hosts stand beside a mode that does not read them."""
    if network_mode is None and allowed_hosts is not None:
        raise ValueError('allowed_hosts needs network_mode = "allowlist"')
    if allowed_hosts and network_mode != "allowlist":
        raise ValueError(f'allowed_hosts needs network_mode = "allowlist", not {network_mode!r}')


def _address(host: str, entry: str) -> str:
    if "%" not in host:
        try:
            if "/" in host:
                return ip_network(host, strict=True).compressed
            return ip_address(host).compressed
        except ValueError as error:
            raise ValueError(f"{entry!r} {_NOT_A_URL}: {error}") from error
    raise ValueError(f"{entry!r} {_NOT_A_URL}")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
