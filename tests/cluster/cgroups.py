"""The control group below which all pods live: known by name, so that taking the cluster down finds them.

Works with the older layout (a tree for each controller) and with the unified one.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.cluster import addresses

ROOT = Path("/sys/fs/cgroup")
NEEDED = ("cpu", "cpuset", "memory", "pids")
KILL_SECONDS = 20.0


def unified() -> bool:
    """Whether the machine has one tree for all controllers (cgroup v2)."""
    return (ROOT / "cgroup.controllers").exists()


def missing_controllers() -> list[str]:
    """Needed controllers that the machine does not have."""
    if unified():
        present = (ROOT / "cgroup.controllers").read_text().split()
        return [name for name in NEEDED if name not in present]
    return [name for name in NEEDED if not (ROOT / name).is_dir()]


def make() -> None:
    """Create the group in every tree, with the same processors and memory nodes as its parent."""
    if unified():
        for name in NEEDED:
            (ROOT / "cgroup.subtree_control").write_text(f"+{name}")
        group = ROOT / addresses.CGROUP
        group.mkdir(exist_ok=True)
        for name in NEEDED:
            (group / "cgroup.subtree_control").write_text(f"+{name}")
        return
    for tree in _trees():
        group = tree / addresses.CGROUP
        group.mkdir(exist_ok=True)
        for setting in ("cpuset.cpus", "cpuset.mems"):
            if (tree / setting).exists() and not (group / setting).read_text().strip():
                (group / setting).write_text((tree / setting).read_text())


def groups() -> list[Path]:
    """Our group, in each tree where it exists."""
    return [tree / addresses.CGROUP for tree in _trees() if (tree / addresses.CGROUP).is_dir()]


def processes() -> set[int]:
    """Ids of all processes in the group or below it."""
    found: set[int] = set()
    for group in groups():
        for below in _below(group):
            with suppress(OSError):
                found |= {int(line) for line in (below / "cgroup.procs").read_text().split()}
    return found


def kill_all() -> None:
    """End every process in the group, and wait until none is left."""
    deadline = time.monotonic() + KILL_SECONDS
    while (living := processes()) and time.monotonic() < deadline:
        for pid in living:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def remove() -> None:
    """Remove the group, which no process may be in any more."""
    for group in groups():
        for below in reversed(list(_below(group))):
            with suppress(OSError):
                below.rmdir()


def _trees() -> list[Path]:
    if unified():
        return [ROOT]
    # A controller that shares its tree with another is a link to it.
    trees = [path for path in sorted(ROOT.iterdir()) if path.is_dir() and not path.is_symlink()]
    return [tree for tree in trees if (tree / "cgroup.procs").exists()]


def _below(group: Path) -> Iterator[Path]:
    """The group and all groups in it, parents first."""
    for folder, _, _ in os.walk(group):
        yield Path(folder)
