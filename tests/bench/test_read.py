"""How long reading takes: figures for people, nothing is asserted about them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.suites import make_suite

pytestmark = pytest.mark.bench

_SCRIPT = """
import sys, time
begin = time.perf_counter()
from argo_harbor.sources import load_taskset
imported = time.perf_counter()
taskset = load_taskset(sys.argv[1])
read = time.perf_counter()
print(f"{len(taskset)} tasks: import {imported - begin:.2f} s, read {read - imported:.2f} s")
"""


@pytest.mark.parametrize("tasks", [89, 250, 1000])
def test_reading_in_a_fresh_process(tmp_path: Path, tasks: int, capsys: pytest.CaptureFixture[str]) -> None:
    suite = make_suite(tmp_path / "suite", tasks=tasks, shapes=tasks)
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(suite)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.startswith(f"{tasks} tasks")
    with capsys.disabled():
        print(f"\n{done.stdout.strip()}")
