"""The child process of Harbor: how its end is told."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from argo_harbor.interpreter import interpreter_environment
from argo_harbor.model.plan import AgentPlan
from argo_harbor.model.runner import SandboxSettings
from argo_harbor.runner.harbor_process import HarborProcess
from argo_harbor.runner.job import REPORT_FILE, Job
from argo_harbor.runner.process import Interrupt
from argo_harbor.runner.supervise import Ended, run_child
from tests.support.records import task_plan


def job(work: Path, **changes: object) -> Job:
    values = {
        "mode": "trial",
        "part": task_plan(0, "acme/one"),
        "agent": AgentPlan(name="oracle", calls_model=False),
        "sandbox": SandboxSettings(run_scratch=str(work)),
        "task_dir": str(work / "task"),
        "work_dir": str(work),
        "trial_name": "one__0-0-0",
    }
    return Job.model_validate(values | changes)


def run(made: Job, *, outer: float = 60, deadline: float | None = None, asked: bool = False) -> Ended:
    interrupt = Interrupt()
    interrupt.asked = asked
    before = signal.getsignal(signal.SIGTERM)
    child = HarborProcess(Path(made.work_dir))
    try:
        return asyncio.run(
            run_child(
                child,
                made,
                outer_seconds=outer,
                run_deadline=deadline,
                on_phase=lambda phase: None,
                interrupt=interrupt,
            )
        )
    finally:
        child.discard()
        signal.signal(signal.SIGTERM, before)


def test_a_task_that_harbor_cannot_load_is_reported_by_name(tmp_path: Path) -> None:
    ended = run(job(tmp_path))
    assert ended.stop == ""
    assert ended.report is not None
    assert not ended.report.created
    assert "FileNotFoundError" in ended.report.unusable


def test_a_child_that_dies_leaves_its_last_words(tmp_path: Path) -> None:
    # Its home cannot be made where a file is.
    (tmp_path / "home").write_text("")
    ended = run(job(tmp_path))
    assert (ended.report, ended.stop) == (None, "died")
    assert "status 1" in ended.detail
    assert "FileExistsError" in ended.detail


def test_a_report_that_is_no_report_is_none(tmp_path: Path) -> None:
    (tmp_path / REPORT_FILE).write_text("{}")
    (tmp_path / "home").write_text("")
    assert run(job(tmp_path)).report is None


@pytest.mark.parametrize(
    ("outer", "deadline", "asked", "stop"),
    [(0.0, None, False, "deadline"), (60.0, 1.0, False, "expired"), (60.0, None, True, "cancelled")],
)
def test_clocks_and_signals_end_the_child(
    tmp_path: Path, outer: float, deadline: float | None, asked: bool, stop: str
) -> None:
    ended = run(job(tmp_path), outer=outer, deadline=deadline, asked=asked)
    assert ended.stop == stop


def test_a_child_without_work_to_do_is_ended_at_once(tmp_path: Path) -> None:
    child = HarborProcess(tmp_path)
    child.discard()
    child.discard()
    assert asyncio.run(child.wait()) == -signal.SIGKILL


def test_only_what_python_needs_is_handed_on() -> None:
    environment = {"PATH": "/bin", "PYTHONHASHSEED": "1", "AWS_SECRET": "x", "LC_ALL": "C", "PLANTED": "y"}
    assert interpreter_environment(environment) == {"PATH": "/bin", "PYTHONHASHSEED": "1", "LC_ALL": "C"}


def test_a_process_dies_with_its_parent() -> None:
    child = (
        "import signal, time; from argo_harbor.runner.process import die_with_parent;"
        "die_with_parent(signal.SIGKILL); print(__import__('os').getpid(), flush=True); time.sleep(60)"
    )
    parent = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}]); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 10
    while _alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _alive(pid)


def test_a_parent_that_is_gone_already_is_noticed() -> None:
    code = (
        "import signal; from argo_harbor.runner.process import die_with_parent;"
        f"die_with_parent(signal.SIGTERM, {os.getpid() + 1}); print('alive')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "")


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
