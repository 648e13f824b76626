"""Looks for what a cluster may leave on the machine. ``down`` asks it, and so does the test of ``down``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.cluster import addresses, cgroups, kubeconfig, mounts, network, sockets
from tests.cluster.state import State


def find(state: State) -> list[str]:
    """Everything of the cluster that is still there besides its folder, a line each."""
    return [
        *(f"process {pid}: {command}" for pid, command in processes(state)),
        *(f"mount {point}" for point in mounts.below(state.folder)),
        *(f"control group {group}" for group in cgroups.groups()),
        *_interfaces(),
        *_rules(),
        *(f"folder {folder}" for folder in state.load().created if Path(folder).exists()),
        *(f"socket {path}" for path in sockets.dead()),
        *(f"kernel setting {key}" for key in network.changed_sysctls(state)),
        *_context(state),
    ]


def processes(state: State) -> list[tuple[int, str]]:
    """Processes that the cluster started: ids and command lines."""
    return [(pid, command) for pid, command in _commands() if _is_ours(pid, command, state)]


def shims(state: State) -> list[int]:
    """Processes that hold a container of ours; they outlive containerd on purpose."""
    return [pid for pid, command in _commands() if _is_shim(command, state)]


def _commands() -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        yield int(entry.name), " ".join(word.decode(errors="replace") for word in words if word)


def _is_shim(command: str, state: State) -> bool:
    return "containerd-shim" in command and str(state.containerd_socket) in command


def _is_ours(pid: int, command: str, state: State) -> bool:
    if pid == os.getpid():
        return False
    program = command.split(" ", 1)[0]
    return (
        _is_shim(command, state)
        or program.startswith(str(state.programs))
        or (program.endswith("containerd") and str(state.config) in command)
    )


def _interfaces() -> Iterator[str]:
    for name in (addresses.BRIDGE, addresses.NODE_INTERFACE):
        if Path("/sys/class/net", name).exists():
            yield f"network interface {name}"
        yield from (f"network interface {port}" for port in network.ports(name))


def _rules() -> Iterator[str]:
    for family in network.FAMILIES:
        if shutil.which(f"{family}-save"):
            yield from (f"{family}: {line}" for line in network.our_rules(family))
    if shutil.which("ipset"):
        yield from (f"ipset {name}" for name in network.ipsets())


def _context(state: State) -> Iterator[str]:
    file = Path(state.load().user_kubeconfig or kubeconfig.user_file())
    if kubeconfig.holds_us(file):
        yield f"context {addresses.CONTEXT} in {file}"
