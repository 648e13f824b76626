"""Scratch folders of runs: locked while used, swept when their run has died."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from argo_harbor.engines import scratch
from argo_harbor.errors import PlatformError

HOLD = """
import sys
from pathlib import Path
from argo_harbor.engines.scratch import run_scratch
with run_scratch(sys.argv[1], Path(sys.argv[2])) as folder:
    (folder / "work").mkdir()
    print(folder, flush=True)
    sys.stdin.read()
"""


def hold(run_id: str, preferred: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process that holds the folder of a run until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, run_id, str(preferred)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


@pytest.fixture
def run_id() -> str:
    return f"run-{os.urandom(8).hex()}"


def test_a_folder_goes_with_its_run(tmp_path: Path, run_id: str) -> None:
    with scratch.run_scratch(run_id, tmp_path) as folder:
        (folder / "inner").mkdir()
        assert not scratch.wait_until_quiet(run_id, tmp_path, 0.2)
    assert not folder.exists()
    assert scratch.wait_until_quiet(run_id, tmp_path, 0)


def test_a_living_run_is_not_swept_and_a_killed_one_is(tmp_path: Path, run_id: str) -> None:
    process, folder = hold(run_id, tmp_path)
    try:
        assert folder not in scratch.sweep(tmp_path)
        assert (folder / "work").is_dir()
        process.kill()
        process.wait()
        assert folder.exists()
        assert scratch.wait_until_quiet(run_id, tmp_path, 5)
        assert folder in scratch.sweep(tmp_path)
        assert not folder.exists()
    finally:
        process.kill()
        process.communicate()


def test_a_folder_that_is_being_made_is_left_alone_until_it_is_old(tmp_path: Path, run_id: str) -> None:
    folder = tmp_path / run_id
    folder.mkdir()
    assert scratch.sweep(tmp_path) == []
    os.utime(folder, (0, 0))
    assert scratch.sweep(tmp_path) == [folder]


def test_links_are_not_followed(tmp_path: Path, run_id: str) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / run_id).symlink_to(tmp_path / "precious")
    assert scratch.sweep(tmp_path) == []
    assert (tmp_path / "precious").is_dir()


@pytest.mark.parametrize("place", ["/proc/none", "file/none"])
def test_a_folder_that_cannot_be_made(tmp_path: Path, run_id: str, place: str) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(PlatformError, match="cannot prepare the run in") as found,
        scratch.run_scratch(run_id, tmp_path / place),
    ):
        pass
    assert found.value.code == "store_write_failed"


def test_a_sandbox_that_never_came_to_be_is_ended(tmp_path: Path, run_id: str) -> None:
    """A program of bwrap's name stands for one: the real one can be cut off so only for a moment."""
    process, folder = hold(run_id, tmp_path)
    unborn = other = None
    try:
        bwrap = Path(shutil.copy("/bin/sleep", folder / "work/bwrap"))
        bystander = Path(shutil.copy("/bin/sleep", folder / "work/reader"))
        unborn, other = (subprocess.Popen([program, "600"]) for program in (bwrap, bystander))
        assert folder not in scratch.sweep(tmp_path)
        assert unborn.poll() is None
        process.kill()
        process.wait()
        assert folder in scratch.sweep(tmp_path)
        assert unborn.wait(5) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        for started in (process, unborn, other):
            if started is not None:
                started.kill()
        process.communicate()
