"""execd as the first process of a container, which only newer releases can be: the stand-in alone."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.contract.daemons import EXECD_TOKEN, Program, ping
from tests.contract.namespaces import Namespace, namespaces
from tests.contract.sdk import Execd
from tests.contract.test_execd_commands import lines, wait_for
from tests.support.standins import BOOTSTRAP

pytestmark = pytest.mark.contract

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def place(_machine: None) -> Iterator[Namespace]:
    with namespaces("init") as (made,), made.entered():
        yield made


@pytest.fixture
def container(own_execd: Program, place: Namespace, tmp_path: Path) -> Iterator[Start]:
    """A function that starts a container's command with processes of its own, and waits for execd."""
    started: list[subprocess.Popen[str]] = []

    def start(*command: str | Path, init: str = "1", wait: bool = True) -> subprocess.Popen[str]:
        process = place.start(
            ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", *command],
            env={
                "EXECD": str(own_execd.path),
                "EXECD_INIT": init,
                "EXECD_ENVS": str(tmp_path / "below" / "env"),
                "EXECD_ACCESS_TOKEN": EXECD_TOKEN,
                "TMPDIR": str(tmp_path),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        started.append(process)
        while wait:
            with contextlib.suppress(OSError):
                wait = ping().status != 200
            assert process.poll() is None
        return process

    yield start
    for each in started:
        each.kill()
        each.communicate()


def first_process(place: Namespace) -> int:
    """Number, as the machine counts, of the container's first process."""
    pids = subprocess.run(["ip", "netns", "pids", place.name], capture_output=True, text=True, check=True)
    for pid in pids.stdout.split():
        status = Path(f"/proc/{pid}/status").read_text()
        numbers = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[1:]
        if len(numbers) > 1 and numbers[-1] == "1":
            return int(pid)
    raise AssertionError(pids.stdout)


def test_it_is_the_first_process(container: Start) -> None:
    container(BOOTSTRAP, "sleep", "infinity")
    execution = Execd(EXECD_TOKEN).commands.run("tr '\\0' ' ' < /proc/1/cmdline")
    assert "--init -- sleep infinity" in lines(execution.logs.stdout)[0]


@pytest.mark.parametrize(("program", "code"), [("exit 0", 0), ("exit 42", 42), ("kill -9 $$", 137)])
def test_the_programs_end_is_the_containers(container: Start, program: str, code: int) -> None:
    process = container(BOOTSTRAP, "-c", program, wait=False)
    assert process.wait(timeout=10) == code


def test_program_that_is_not_there(container: Start) -> None:
    process = container(BOOTSTRAP, "/no/such/program", wait=False)
    assert process.wait(timeout=10) == 127


@pytest.mark.parametrize("program", ["sleep infinity", "trap '' TERM; while :; do sleep 1; done"])
def test_it_ends_at_once_when_asked_to(container: Start, place: Namespace, program: str) -> None:
    process = container(BOOTSTRAP, "-c", program)
    started = time.monotonic()
    subprocess.run(["kill", "-TERM", str(first_process(place))], check=True)
    assert process.wait(timeout=10) == 128 + signal.SIGTERM
    assert time.monotonic() - started < 2


def test_children_are_told(container: Start, place: Namespace, tmp_path: Path) -> None:
    container(BOOTSTRAP, "sleep", "infinity")
    ready, told = tmp_path / "ready", tmp_path / "told"
    command = f"trap 'touch {told}; exit' TERM; touch {ready}; while :; do sleep 0.05; done"
    Execd(EXECD_TOKEN).commands.run(f"({command}) >/dev/null 2>&1 &")
    wait_for(ready)
    subprocess.run(["kill", "-TERM", str(first_process(place))], check=True)
    wait_for(told)


def test_without_a_program_nothing_inside_can_end_it(container: Start, own_execd: Program) -> None:
    """The trial pod's way: a program of its own would be one more process that an agent may kill."""
    process = container(own_execd.path, "--init")
    sandbox = Execd(EXECD_TOKEN)
    sandbox.commands.run("sleep 60 & kill -9 1; kill -9 -1")
    assert process.poll() is None
    assert lines(sandbox.commands.run("ps -e -o comm= | grep -c sleep").logs.stdout) == ["0"]


def test_without_a_program_it_ends_when_asked_to(
    container: Start, own_execd: Program, place: Namespace
) -> None:
    process = container(own_execd.path, "--init")
    Execd(EXECD_TOKEN).commands.run("sleep 60 >/dev/null 2>&1 &")
    started = time.monotonic()
    subprocess.run(["kill", "-TERM", str(first_process(place))], check=True)
    assert process.wait(timeout=10) == 0
    assert time.monotonic() - started < 2


def test_orphans_leave_no_zombies(container: Start) -> None:
    container(BOOTSTRAP, "sleep", "infinity")
    sandbox = Execd(EXECD_TOKEN)
    sandbox.commands.run("for i in $(seq 50); do (sleep 0.01 &) ; done; sleep 0.3")
    execution = sandbox.commands.run("grep -l '^State:.Z' /proc/[0-9]*/status | wc -l")
    assert lines(execution.logs.stdout) == ["0"]


def test_exit_statuses_survive_a_crowd(container: Start) -> None:
    """The one who reaps orphans must not take the status of a command."""
    container(BOOTSTRAP, "sleep", "infinity")
    sandbox = Execd(EXECD_TOKEN)
    codes = [sandbox.commands.run(f"(true &); (false &); exit {code}").exit_code for code in range(40)]
    assert codes == list(range(40))


def test_without_init_it_runs_beside_the_program(container: Start) -> None:
    process = container(BOOTSTRAP, "-c", "while ! [ -e $TMPDIR/go ]; do sleep 0.05; done; exit 9", init="")
    Execd(EXECD_TOKEN).commands.run('touch "$TMPDIR/go"')
    assert process.wait(timeout=10) == 9
