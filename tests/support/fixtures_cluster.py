"""Pytest fixtures for the tests marked ``cluster``; ``tests/conftest.py`` loads them as a plugin.

Where no cluster can be started the tests are skipped and say why; in continuous integration that is a
failure. A cluster that was there before stays. Run these tests in one process: workers would end it under
each other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.down import down
from tests.cluster.errors import MachineUnfit
from tests.cluster.state import State
from tests.cluster.up import up
from tests.support import gotools


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The real cluster, started if it was not up, and then ended after the last test."""
    terminal = request.config.pluginmanager.getplugin("terminalreporter")
    say = terminal.write_line if terminal else print
    state = State.here()
    # Of a start that others have under way the end is waited for, and the cluster is theirs.
    ours = not state.exists
    try:
        up(state, say=say)
    except (MachineUnfit, gotools.ToolUnavailable) as reason:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no cluster: {reason}", pytrace=False)
        pytest.skip(f"no cluster: {reason}")
    yield Cluster.of(state)
    if ours:
        down(state, say=say)


@pytest.fixture
def cluster_environment(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """Lets the test's own process, and what it starts, find the cluster as a user's does."""
    environment = cluster.environment
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return environment
