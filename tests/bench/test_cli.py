"""What a user waits for at the prompt: printed, not asserted. Help should take 0.3 s, 1,000 tasks 2 s."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.suites import make_suite

pytestmark = pytest.mark.bench
ROUNDS = 3


def wall(arguments: list[str], folder: Path) -> list[float]:
    """Seconds of each round, each in a fresh process and an empty folder."""
    times = []
    for number in range(ROUNDS):
        place = folder / str(number)
        place.mkdir()
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "argo_harbor", *arguments], cwd=place, check=True, capture_output=True
        )
        times.append(time.perf_counter() - start)
    return sorted(times)


@pytest.mark.parametrize("tasks", [0, 89, 1000], ids=["help", "89-tasks", "1000-tasks"])
def test_a_command_in_a_fresh_process(tasks: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--help"]
    if tasks:
        suite = make_suite(tmp_path / "suite", tasks=tasks)
        arguments = ["compile", "--harbor-dir", str(suite), "--agent", "oracle", "-o", "out"]
    least, *_, most = wall(arguments, tmp_path)
    with capsys.disabled():
        print(f"\n{f'compile {tasks} tasks' if tasks else '--help'}: {least:.2f} to {most:.2f} s")
