"""Starts the cluster's programs so that they outlive the command that started them, and ends them again.

Each has a process group, a log and a pid file of its own. The pid file also holds the time at which the
process began, because the kernel gives the number of a dead process to another one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.cluster.errors import ClusterError
from tests.cluster.state import State

LOG_LINES = 15
SECONDS_BETWEEN_LOOKS = 0.1


def start(
    state: State, name: str, command: Sequence[str | Path], *, environment: Mapping[str, str] | None = None
) -> None:
    """Start a program unless it runs already."""
    if alive(state, name):
        return
    with log_file(state, name).open("ab") as log:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=state.folder,
            env=environment_with(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    born = _birth(process.pid)
    _pid_file(state, name).write_text(json.dumps({"pid": process.pid, "born": born}))


def environment_with(own: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment without what would lead programs to other clusters or through proxies."""
    misleading = ("KUBE", "ARGO_", "CONTAINERD_", "ETCD_", "REGISTRY_")
    proxies = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(misleading) and name.upper() not in proxies
    }
    return kept | dict(own)


def alive(state: State, name: str) -> bool:
    return _pid(state, name) is not None


def command_line(state: State, name: str) -> list[str]:
    """How a running program was started; empty for one that is not running."""
    pid = _pid(state, name)
    if pid is None:
        return []
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode().rstrip("\0").split("\0")


def names(state: State) -> list[str]:
    """The programs that were started and not stopped since, running or not."""
    return sorted(file.stem for file in state.pids.glob("*.json"))


def stop(state: State, name: str, *, grace_seconds: float = 5.0) -> None:
    """End a program with all of its process group and forget it; no grace means SIGKILL at once."""
    pid = _pid(state, name)
    if pid is not None:
        _signal_group(pid, signal.SIGTERM if grace_seconds else signal.SIGKILL)
        deadline = time.monotonic() + grace_seconds
        while _running(pid) and time.monotonic() < deadline:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        _signal_group(pid, signal.SIGKILL)
        while _running(pid):
            time.sleep(SECONDS_BETWEEN_LOOKS)
    _pid_file(state, name).unlink(missing_ok=True)


def wait_until(
    state: State, condition: Callable[[], bool], *, what: str, seconds: float, needs: Sequence[str] = ()
) -> None:
    """Wait for ``condition``; ``needs`` names the programs without which waiting is vain.

    Raises:
        ClusterError: one of them ended, or the time is over; with the last lines of their logs.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if dead := [name for name in needs if not alive(state, name)]:
            raise ClusterError(f"{dead[0]} ended while {what} was awaited:\n{tail(state, dead[0])}")
        if time.monotonic() > deadline:
            logs = "\n".join(f"{name}:\n{tail(state, name)}" for name in needs)
            raise ClusterError(f"{what}: not after {seconds:.0f} s\n{logs}")
        time.sleep(SECONDS_BETWEEN_LOOKS)


def log_file(state: State, name: str) -> Path:
    return state.logs / f"{name}.log"


def tail(state: State, name: str) -> str:
    """The last lines of a program's log."""
    log = log_file(state, name)
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join(f"    {line}" for line in lines[-LOG_LINES:])


def _pid_file(state: State, name: str) -> Path:
    return state.pids / f"{name}.json"


def _pid(state: State, name: str) -> int | None:
    """The process id, if the program that was started under this name still runs."""
    try:
        written = json.loads(_pid_file(state, name).read_text())
    except FileNotFoundError:
        return None
    pid = int(written["pid"])
    return pid if _running(pid) and _birth(pid) == written["born"] else None


def _running(pid: int) -> bool:
    """Whether the process lives; one that is our own child and has ended is collected on the way."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    stat = _stat(pid)
    return bool(stat) and stat[0] != "Z"


def _birth(pid: int) -> str:
    """When the process began, in clock ticks since boot; empty when there is none."""
    stat = _stat(pid)
    return stat[19] if stat else ""


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    # The second field is the program's name in brackets, which may itself hold blanks and brackets.
    return text.rpartition(")")[2].split()


def _signal_group(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, number)
