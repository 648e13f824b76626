"""Checks of hosts, ranges and URLs in platform and profile files that the models leave to their reader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from argo_harbor.model.task_network import normalize_host

_GROUP = re.compile(r"@[a-z0-9][a-z0-9-]*")


def wrong_hosts(key: str, hosts: Sequence[str], *, groups: bool) -> Iterator[tuple[str, str]]:
    """Key and message of every entry that is no host. `groups` allows `@name`."""
    for number, host in enumerate(hosts):
        if groups and _GROUP.fullmatch(host):
            continue
        try:
            normalize_host(host)
        except ValueError as error:
            yield f"{key}[{number}]", str(error)


def wrong_ranges(key: str, ranges: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Key and message of every entry that is no CIDR range as it would be written out."""
    for number, text in enumerate(ranges):
        try:
            written = str(ip_network(text))
        except ValueError as error:
            yield f"{key}[{number}]", f"{text!r} is no range: {error}"
            continue
        if written != text:
            yield (
                f"{key}[{number}]",
                f"{text!r} must be written {written!r}, because ranges are compared as text",
            )


def wrong_addresses(key: str, addresses: Sequence[str], *, port: bool) -> Iterator[tuple[str, str]]:
    """Key and message of every entry that is no address, or with `port` no `address:port`."""
    for number, text in enumerate(addresses):
        try:
            host, number_of_port = text, "1"
            if port:
                host, _, number_of_port = text.rpartition(":")
            ip_address(host.strip("[]") if port else host)
            valid = number_of_port.isdecimal() and 0 < int(number_of_port) < 2**16
        except ValueError:
            valid = False
        if not valid:
            yield f"{key}[{number}]", f"{text!r} is no {'address:port' if port else 'address'}"


def wrong_url(key: str, url: str) -> Iterator[tuple[str, str]]:
    """A URL without a host, or with a credential in it: settings are copied into every plan."""
    try:
        parsed = urlsplit(url)
        host, secret = parsed.hostname, parsed.username or parsed.password
    except ValueError as error:
        yield key, f"is no URL: {error}"
        return
    if not host:
        yield key, "has no host"
    if secret:
        yield key, "holds a user or password, and settings are copied into every plan"
