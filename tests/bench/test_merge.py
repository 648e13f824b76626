"""How long a merge takes and how much memory, in a process of its own. Prints figures, asserts none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from argo_harbor.model.base import canonical_json
from argo_harbor.store import layout
from tests.support.records import Run, make_run

pytestmark = pytest.mark.bench

TASKS = 3200
ATTEMPTS = 5

_MERGE = """
import json, resource, sys, time
from pathlib import Path
began = time.perf_counter()
from argo_harbor.bundle.merge import merge
from argo_harbor.store.directory import DirectoryStore
loaded = time.perf_counter()
result = merge(sys.argv[2], DirectoryStore(Path(sys.argv[1])))
done = time.perf_counter()
print(json.dumps({
    "import": loaded - began,
    "merge": done - loaded,
    "rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    "scored": result.state.coverage.scored,
}))
"""


def fill(run: Run, files: list[str]) -> None:
    """Every planned attempt once, written without the store's syncs."""
    for index in range(TASKS):
        for attempt in range(ATTEMPTS):
            uid = run.uid()
            folder = run.store.path(run.folder(index, attempt, 0, uid).rstrip("/"))
            record = run.record_data(
                index,
                attempt,
                uid=uid,
                reward=float(index % 3 != 0),
                files=files,
                usage={"prompt_tokens": 1000 + index, "completion_tokens": 100, "cost_usd": 0.01},
            )
            for name in files:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(b"x" * 500)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / layout.STARTED).write_bytes(b"{}")
            (folder / layout.TRIAL).write_bytes(canonical_json(record))


@pytest.mark.parametrize(
    "files", [[], ["agent/oracle.txt", "trial.log", "verifier/test-stdout.txt"]], ids=len
)
def test_merge_16000_trials(tmp_path: Path, files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path, TASKS, attempts=ATTEMPTS)
    run.store.put(layout.request(run.run_id), canonical_json({"plan_digest": run.plan}))
    fill(run, files)
    figures = []
    for _ in ("first", "repeated"):
        done = subprocess.run(
            [sys.executable, "-c", _MERGE, str(tmp_path), run.run_id], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        figures.append(json.loads(done.stdout))
    assert all(figure["scored"] == TASKS * ATTEMPTS for figure in figures)
    report = run.bundle / "report.html"
    with capsys.disabled():
        first, again = figures
        print(
            f"\nmerge of {TASKS * ATTEMPTS} trials, {len(files)} files each: {first['merge']:.1f} s, "
            f"{first['rss_mib']:.0f} MiB; again: {again['merge']:.1f} s; "
            f"report {report.stat().st_size / 1e6:.1f} MB"
        )
