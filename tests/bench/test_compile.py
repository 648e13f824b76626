"""How long a fresh process takes from a suite to the text of its workflow: printed, not asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.suites import make_suite

pytestmark = pytest.mark.bench

PROGRAM = """
import json, sys, time
start = time.perf_counter()
from argo_harbor.model.spec import RunSpec
from argo_harbor.planning.plan import plan
from argo_harbor.sources.directory import read_directory
from argo_harbor.workflow.compile import compile_workflow
from argo_harbor.workflow.emit import to_yaml
laps = [time.perf_counter()]
taskset = read_directory(sys.argv[1])
laps.append(time.perf_counter())
planned = plan(taskset, RunSpec.for_agent("oracle", attempts=int(sys.argv[2])))
planned.digest
laps.append(time.perf_counter())
documents = compile_workflow(planned)
laps.append(time.perf_counter())
size = sum(len(to_yaml(document)) for document in documents)
laps.append(time.perf_counter())
seconds = [after - before for before, after in zip([start, *laps], laps)]
print(json.dumps({"seconds": seconds, "cpu": time.process_time(), "objects": len(documents), "bytes": size}))
"""


@pytest.mark.parametrize(("tasks", "attempts"), [(89, 1), (1000, 1), (1000, 5)])
def test_compile_in_a_fresh_process(
    tasks: int, attempts: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = make_suite(tmp_path / "suite", tasks=tasks)
    runs = [measured(suite, attempts) for _ in range(3)]
    best = min(runs, key=lambda run: run["cpu"])
    names = ("import", "read", "plan", "compile", "emit")
    parts = ", ".join(f"{name} {lap:.2f}" for name, lap in zip(names, best["seconds"], strict=True))
    total = sum(best["seconds"])
    with capsys.disabled():
        print(
            f"\n{tasks} tasks x {attempts}: {total:.2f} s, {best['cpu']:.2f} s of CPU ({parts}); "
            f"{best['objects']} objects, {best['bytes'] / 1024:.0f} KiB"
        )
    assert best["bytes"]


def measured(suite: Path, attempts: int) -> dict[str, float | list[float]]:
    command = [sys.executable, "-c", PROGRAM, str(suite), str(attempts)]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(finished.stdout)
