"""Programs outlive their starter, are found again, and end with all their children."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cluster import processes
from tests.cluster.errors import ClusterError
from tests.cluster.state import State


@pytest.fixture
def state(tmp_path: Path) -> State:
    state = State(tmp_path / "cluster")
    state.make()
    return state


def pid_of(state: State, name: str) -> int:
    return int(json.loads((state.pids / f"{name}.json").read_text())["pid"])


def test_start_is_repeatable_and_stop_ends_the_group(state: State) -> None:
    command = ["sh", "-c", "sleep 300 & echo $! > child; echo started; wait"]
    processes.start(state, "sleeper", command)
    child = state.folder / "child"
    processes.wait_until(
        state,
        lambda: child.exists() and child.read_text() != "",
        what="child",
        seconds=10,
        needs=("sleeper",),
    )
    first = pid_of(state, "sleeper")
    processes.start(state, "sleeper", command)
    assert pid_of(state, "sleeper") == first
    assert os.getpgid(int(child.read_text())) == first
    assert processes.names(state) == ["sleeper"]

    processes.stop(state, "sleeper")
    assert not processes.alive(state, "sleeper")
    assert processes.names(state) == []
    # An ended process that nobody has collected yet has no command any more.
    command_line = Path("/proc", child.read_text().strip(), "cmdline")
    processes.wait_until(
        state, lambda: not command_line.exists() or not command_line.read_text(), what="end", seconds=10
    )


def test_number_of_another_process_is_not_ours(state: State) -> None:
    (state.pids / "old.json").write_text(json.dumps({"pid": os.getpid(), "born": "1"}))
    assert not processes.alive(state, "old")
    processes.stop(state, "old")
    assert processes.names(state) == []


def test_program_that_ends_is_quoted(state: State) -> None:
    processes.start(state, "broken", ["sh", "-c", "echo no such flag; exit 1"])
    with pytest.raises(ClusterError, match=r"(?s)broken ended while it was awaited.*no such flag"):
        processes.wait_until(state, lambda: False, what="it", seconds=10, needs=("broken",))


def test_waiting_has_an_end(state: State) -> None:
    with pytest.raises(ClusterError, match="it: not after 0 s"):
        processes.wait_until(state, lambda: False, what="it", seconds=0)


def test_environment_leads_to_no_other_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/elsewhere")
    monkeypatch.setenv("https_proxy", "http://proxy.test")
    environment = processes.environment_with({"KEY": "value"})
    assert environment["KEY"] == "value"
    assert "KUBECONFIG" not in environment
    assert "https_proxy" not in environment
