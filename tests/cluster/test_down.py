"""A cluster that went away has left nothing. Ends a cluster that is up, so it is run by itself."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.cluster import kubeconfig, leftovers
from tests.cluster.state import State
from tests.cluster.up import is_up
from tests.support.gotools import REPOSITORY

pytestmark = pytest.mark.cluster_down


def run(command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.cluster", command], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def picture() -> dict[str, str]:
    """What a cluster could change on the machine, as the machine's own tools show it."""
    commands = {
        "rules": ["iptables-save"],
        "rules of IPv6": ["ip6tables-save"],
        "tables": ["nft", "--stateless", "list", "ruleset"],
        "sets": ["ipset", "list", "-name"],
        "interfaces": ["ip", "-brief", "link"],
        "routes": ["ip", "route"],
        "network namespaces": ["ip", "netns", "list"],
        "mounts": ["findmnt", "--noheadings", "--raw", "--output", "TARGET"],
        "settings": ["sysctl", "net.ipv4.ip_forward", "vm.overcommit_memory", "kernel.panic"],
    }
    return {name: _lasting(subprocess.check_output(command, text=True)) for name, command in commands.items()}


def _lasting(output: str) -> str:
    """Without what changes by itself: counters of packets, and comments with the time."""
    lines = [line for line in output.splitlines() if not line.startswith("#")]
    return "\n".join(re.sub(r"\[\d+:\d+\]", "", line) for line in lines)


@pytest.fixture
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[State]:
    """A machine without a cluster; whoever had one before has one again afterwards."""
    # This one is about the user's own file.
    monkeypatch.delenv("KUBECONFIG")
    state = State.here()
    had = is_up(state)
    run("down")
    yield state
    if had:
        run("up")


def test_down_leaves_nothing(no_cluster: State) -> None:
    state = no_cluster
    assert leftovers.find(state) == []
    before = picture()

    started = time.monotonic()
    assert "The cluster is up" in run("up")
    print(f"up, warm: {time.monotonic() - started:.1f} s")
    assert kubeconfig.holds_us(kubeconfig.user_file())
    assert leftovers.find(state), "a running cluster must be seen"
    assert "the cluster is up" in run("up")

    started = time.monotonic()
    run("down")
    print(f"down: {time.monotonic() - started:.1f} s")
    assert not state.folder.exists()
    assert leftovers.find(state) == []
    assert picture() == before
    assert "there is no cluster" in run("down")
