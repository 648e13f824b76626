"""Sets of hosts: what `@groups` stand for and whether one entry lies inside another.

Entries are host names, `*.suffix` wildcards (which leave out the suffix itself), addresses and CIDR ranges,
in the spelling of `model.task_network`. Called by `planning.network` only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network

from argo_harbor.model.task_network import normalize_host

PUBLIC = "@public"
"""Any host outside the denied ranges."""


@dataclass(frozen=True)
class HostSet:
    """What may be reached: the listed entries, or with `public` any host outside the denied ranges."""

    entries: frozenset[str] = frozenset()
    public: bool = False

    def __or__(self, other: HostSet) -> HostSet:
        return HostSet(self.entries | other.entries, self.public or other.public)

    def covers(self, entry: str) -> bool:
        """True when everything that the entry names lies inside this set."""
        return self.public or entry in self.entries or any(covers(wide, entry) for wide in self.entries)

    def less(self, other: HostSet) -> tuple[str, ...]:
        """The entries that the other set does not cover, sorted; `@public` stands for any host."""
        if self.public:
            return () if other.public else (PUBLIC,)
        return tuple(sorted(entry for entry in self.entries if not other.covers(entry)))


def covers(wide: str, narrow: str) -> bool:
    """True when every host of the second entry is one of the first."""
    if wide == narrow:
        return True
    if wide.startswith("*."):
        return narrow.removeprefix("*").endswith(wide[1:]) and _network(narrow) is None
    outer, inner = _network(wide), _network(narrow)
    return outer is not None and inner is not None and _inside(inner, outer)


def denied_by(entry: str, denied: Iterable[str]) -> str:
    """The denied range that holds the whole of an address or range; empty for names and reachable ones."""
    inner = _network(entry)
    if inner is None:
        return ""
    return next((text for text in denied if (outer := _network(text)) and _inside(inner, outer)), "")


class UndefinedGroupError(ValueError):
    """A `@group` that the platform does not define; `group` is its name without `@`."""

    def __init__(self, group: str) -> None:
        super().__init__(f"the platform defines no group {group!r}")
        self.group = group


def expand(entry: str, groups: Mapping[str, tuple[str, ...]]) -> HostSet:
    """What one entry of a profile stands for. Raises UndefinedGroupError, ValueError for what is no host."""
    if entry == PUBLIC:
        return HostSet(public=True)
    if not entry.startswith("@"):
        return HostSet(frozenset((normalize_host(entry),)))
    group = groups.get(entry[1:])
    if group is None:
        raise UndefinedGroupError(entry[1:])
    return HostSet(frozenset(normalize_host(host) for host in group))


@lru_cache(maxsize=4096)
def _network(entry: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(entry)
    except ValueError:
        return None


def _inside(inner: IPv4Network | IPv6Network, outer: IPv4Network | IPv6Network) -> bool:
    if isinstance(inner, IPv4Network):
        return isinstance(outer, IPv4Network) and inner.subnet_of(outer)
    return isinstance(outer, IPv6Network) and inner.subnet_of(outer)
