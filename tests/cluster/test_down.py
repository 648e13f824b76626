"""A cluster that went away has left nothing, and comes back. Ends a cluster that is up: run it by itself."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from tests.cluster import kubeconfig, leftovers
from tests.cluster.cluster import Cluster
from tests.cluster.state import State
from tests.support.gotools import REPOSITORY

pytestmark = pytest.mark.cluster_down


def run(command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.cluster", command],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def picture() -> dict[str, str]:
    """What a cluster could change on the machine, as the machine's own tools show it."""
    commands = {
        "rules": ["iptables-save"],
        "rules of IPv6": ["ip6tables-save"],
        "tables": ["nft", "list", "ruleset"],
        "sets": ["ipset", "list", "-name"],
        "interfaces": ["ip", "-brief", "link"],
        "routes": ["ip", "route"],
        "network namespaces": ["ip", "netns", "list"],
        "mounts": ["findmnt", "--noheadings", "--raw", "--output", "TARGET"],
    }
    return {
        name: subprocess.run(command, capture_output=True, text=True).stdout
        for name, command in commands.items()
    }


def test_down_leaves_nothing_and_up_is_fast_again(cluster: Cluster) -> None:
    state = State.here()
    assert leftovers.find(state), "a running cluster must be seen"
    file = kubeconfig.user_file()
    assert kubeconfig.holds_us(file)

    run("down")
    assert not state.folder.exists()
    assert leftovers.find(state) == []
    assert not kubeconfig.holds_us(file)
    assert "there is no cluster" in run("down")
    before = picture()

    started = time.monotonic()
    assert "The cluster is up" in run("up")
    print(f"up, warm: {time.monotonic() - started:.1f} s")
    assert "the cluster is up" in run("up")
    run("down")
    assert leftovers.find(state) == []
    assert picture() == before

    # Whoever had a cluster before has one again.
    assert "The cluster is up" in run("up")
    assert os.access(state.kubeconfig, os.R_OK)
