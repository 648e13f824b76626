"""How long publishing and merging take on a real S3 server. Prints figures, asserts none of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from argo_harbor.bundle.merge import merge
from argo_harbor.engines.download import download_bundle
from argo_harbor.engines.publish import publish
from argo_harbor.model.base import canonical_json
from argo_harbor.model.spec import RunSpec
from argo_harbor.planning.plan import plan
from argo_harbor.sources.read import load_taskset
from argo_harbor.store import layout
from tests.support.records import make_run
from tests.support.s3server import S3Server
from tests.support.stores import Counting, open_s3
from tests.support.suites import make_suite

pytestmark = pytest.mark.bench

TASKS = 1000
TRIALS = 1000
FILES = {"agent/oracle.txt": b"x" * 500, "trial.log": b"x" * 500, "verifier/test-stdout.txt": b"x" * 500}


def timed(what: str, action: Callable[[], object], counting: Counting) -> str:
    counting.calls.clear()
    began = time.perf_counter()
    action()
    seconds = time.perf_counter() - began
    calls = ", ".join(f"{number} {call}" for call, number in sorted(counting.calls.items()))
    return f"{what}: {seconds:.1f} s ({calls})"


def test_publish_1000_tasks(s3_server: S3Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taskset = load_taskset(make_suite(tmp_path / "suite", tasks=TASKS))
    planned = plan(taskset, RunSpec.for_agent("nop"))
    store = Counting(open_s3(s3_server))
    lines = [
        timed(what, lambda: publish(planned, taskset, store), store)
        for what in (f"publish of {TASKS} tasks to S3", "again, unchanged")
    ]
    assert store.calls["put"] == 0
    with capsys.disabled():
        print("\n" + "\n".join(lines))


def test_merge_1000_trials_on_s3(
    s3_server: S3Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The server's objects are files: put there behind its back, they take no time of the bench.
    run = make_run(s3_server.folder / s3_server.bucket / "bench-merge", TRIALS)
    run.store.put(layout.request(run.run_id), canonical_json({"plan_digest": run.plan}))
    for index in range(TRIALS):
        uid = run.uid()
        folder = run.store.path(run.folder(index, 0, 0, uid).rstrip("/"))
        record = run.record_data(index, uid=uid, files=sorted(FILES))
        for name, data in {
            **FILES,
            layout.STARTED: b"{}",
            layout.TRIAL: canonical_json(record),
        }.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
    store = Counting(open_s3(s3_server, root="bench-merge"))
    lines = [
        timed(
            f"merge of {TRIALS} trials, {len(FILES)} files each, on S3",
            lambda: merge(run.run_id, store),
            store,
        ),
        timed("its download", lambda: download_bundle(run.run_id, store, tmp_path / "down"), store),
    ]
    with capsys.disabled():
        print("\n" + "\n".join(lines))
