"""Looks whether this machine can hold the cluster, before anything on it is changed."""

from __future__ import annotations

import errno
import ipaddress
import json
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.cluster import addresses, cgroups, programs
from tests.cluster.errors import MachineUnfit
from tests.cluster.shell import run, succeeds
from tests.support import gotools

MIB = 1024 * 1024
NEEDED_MEMORY_MIB = 6 * 1024
NEEDED_DISK_MIB = 12 * 1024


def check(folder: Path) -> None:
    """Refuse a machine that cannot hold the cluster; ``folder`` is where it would lie.

    Raises:
        MachineUnfit: with everything that is missing, one line each.
    """
    if os.geteuid() != 0:
        raise MachineUnfit(
            "the cluster runs containers and changes the machine's network: it must be run as root"
        )
    findings = [finding for look in _LOOKS for finding in look()]
    findings += _room(folder)
    if findings:
        raise MachineUnfit(
            "this machine cannot hold the cluster:\n" + "\n".join(f"  * {f}" for f in findings)
        )


def check_network() -> None:
    """Refuse a machine on which the cluster's addresses, ports or names are in use by something else.

    Raises:
        MachineUnfit: as :func:`check`; only meaningful while the cluster does not run.
    """
    findings = [*_taken_interfaces(), *_taken_networks(), *_another_kubernetes(), *_taken_ports()]
    if findings:
        raise MachineUnfit(
            "something else is in the cluster's place:\n" + "\n".join(f"  * {f}" for f in findings)
        )


def _system() -> Iterator[str]:
    if not Path("/proc/self/mountinfo").exists():
        yield "it is no Linux"
    if shutil.which("apt-get") is None and shutil.which("containerd") is None:
        yield "no containerd, and no apt-get to install it with: the cluster is made for Debian and its kin"


def _file_systems() -> Iterator[str]:
    known = Path("/proc/filesystems").read_text().split()
    if "overlay" not in known and not succeeds(["modprobe", "overlay"]):
        yield "the kernel has no overlay file system, in which containers keep their files"


def _control_groups() -> Iterator[str]:
    if missing := cgroups.missing_controllers():
        yield f"no control groups for {', '.join(missing)} below {cgroups.ROOT}: limits need them"


def _bridges() -> Iterator[str]:
    if not Path("/proc/sys/net/bridge").exists() and not succeeds(["modprobe", "br_netfilter"]):
        yield "the kernel does not filter bridged packets (br_netfilter), which NetworkPolicies need"


def _go() -> Iterator[str]:
    unfinished = [tool for tool in programs.ALL if not programs.path(tool).exists()]
    if not unfinished:
        return
    try:
        gotools.require_go(max(unfinished, key=lambda tool: tool.oldest_go))
    except gotools.ToolUnavailable as reason:
        yield str(reason)


def _memory() -> Iterator[str]:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // MIB
    if total < NEEDED_MEMORY_MIB:
        yield f"{total} MiB of memory; the cluster and its builds need {NEEDED_MEMORY_MIB}"


def _room(folder: Path) -> Iterator[str]:
    place = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(place).free // MIB
    if free < NEEDED_DISK_MIB:
        yield f"{free} MiB free at {place}; images and builds need {NEEDED_DISK_MIB}"


_LOOKS: tuple[Callable[[], Iterator[str]], ...] = (
    _system,
    _file_systems,
    _control_groups,
    _bridges,
    _go,
    _memory,
)


def _taken_interfaces() -> Iterator[str]:
    for name in (addresses.BRIDGE, addresses.NODE_INTERFACE):
        if Path("/sys/class/net", name).exists():
            yield f"there is a network interface {name} that no cluster of ours has made"


def _taken_networks() -> Iterator[str]:
    ours = [
        ipaddress.ip_network(cidr) for cidr in (addresses.PODS, addresses.SERVICES, addresses.NODE_ADDRESS)
    ]
    for route in json.loads(run(["ip", "-json", "-4", "route"])):
        if route["dst"] == "default":
            continue
        network = ipaddress.ip_network(route["dst"])
        for own in ours:
            if network.overlaps(own):
                yield f"the route to {network} on {route['dev']} overlaps {own}, which the cluster uses"


def _another_kubernetes() -> Iterator[str]:
    if shutil.which("iptables-save") and ":KUBE-SERVICES" in run(["iptables-save", "-t", "nat"]):
        yield "another Kubernetes has its rules in iptables; taking ours down would take its rules too"


def _taken_ports() -> Iterator[str]:
    for address, port in addresses.LISTENERS:
        # Addresses of ours do not exist yet: a server on all addresses would take the port there as well.
        host = address if address.startswith("127.") else "0.0.0.0"
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as taken:
                if taken.errno != errno.EADDRINUSE:
                    raise
                # A server on another single address of the machine does not stand in the way of ours.
                if _listens_everywhere(port) or host != "0.0.0.0":
                    yield f"port {port} is taken by another program"


def _listens_everywhere(port: int) -> bool:
    """Whether a server listens on the port on all addresses."""
    wanted = f"{port:04X}"
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            address, _, number = local.partition(":")
            if state == "0A" and number == wanted and not address.strip("0"):
                return True
    return False
