"""Mounts that the cluster's pods had, found in the kernel's own list."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cluster.shell import succeeds

_ESCAPED = re.compile(r"\\([0-7]{3})")


def below(folder: Path) -> list[Path]:
    """Mount points in ``folder``, the last mounted first."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [Path(_ESCAPED.sub(lambda code: chr(int(code[1], 8)), line.split()[4])) for line in lines]
    return [point for point in reversed(points) if point.is_relative_to(folder)]


def detach_below(folder: Path) -> None:
    """Take off all mounts in ``folder``, those in use too: the kernel ends them with their last user."""
    for point in below(folder):
        # One that lay in another may have gone with it; what stays is seen by whoever looks for leftovers.
        succeeds(["umount", "--lazy", point])
