"""Installs the distribution's packages that the cluster is made of, when they are missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.cluster.errors import ClusterError, MachineUnfit
from tests.support.gotools import Say

LIST = Path(__file__).with_name("packages.txt")
FAILURE_LINES = 15


def wanted() -> list[str]:
    """Names of the packages."""
    lines = [line.strip() for line in LIST.read_text().splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def missing() -> list[str]:
    """Those that are not installed."""
    query = ["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", *wanted()]
    answer = subprocess.run(query, capture_output=True, text=True, check=False).stdout
    installed = {line.split()[0] for line in answer.splitlines() if line.endswith(" installed")}
    return [name for name in wanted() if name not in installed]


def install(*, say: Say) -> None:
    """Install what is missing.

    Raises:
        MachineUnfit: it has no apt.
        ClusterError: apt failed; with its last lines.
    """
    if shutil.which("dpkg-query") is None:
        raise MachineUnfit(f"no dpkg here: install by hand what {LIST.name} lists, on Debian or its kin")
    lacking = missing()
    if not lacking:
        return
    say(f"installing Debian packages: {' '.join(lacking)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *lacking]
    for attempt in (["apt-get", "update"], command):
        done = subprocess.run(attempt, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-FAILURE_LINES:])
        raise ClusterError(f"`{' '.join(command)}` failed:\n{last}")
