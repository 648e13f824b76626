"""What is made of a run does not depend on the store it lies in: a folder, or a real S3 server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from argo_harbor.bundle.collect import Seen
from argo_harbor.bundle.merge import merge
from argo_harbor.bundle.read import read_trials
from argo_harbor.bundle.results import survey
from argo_harbor.bundle.verify import verify
from argo_harbor.engines.download import download_bundle, download_task
from argo_harbor.errors import PlatformError, UsageError
from argo_harbor.model.base import canonical_json
from argo_harbor.model.build import BuildRecord
from argo_harbor.model.plan import Skipped
from argo_harbor.model.states import ResultState, RunPhase
from argo_harbor.store import layout
from argo_harbor.store.base import KeyNotFound, Store
from argo_harbor.store.s3 import S3Store
from tests.support.records import Run, digest_of, make_run
from tests.support.s3server import S3Server
from tests.support.stores import Counting, open_s3

pytestmark = pytest.mark.services


@pytest.fixture
def s3(s3_server: S3Server) -> S3Store:
    return open_s3(s3_server)


def eventful(root: Path) -> Run:
    """Attempts of every kind, in a folder: decided, retried, lost, damaged, unplanned, never started."""
    run = make_run(
        root, 40, attempts=2, skipped={39: Skipped(code="gpu_unsupported", message="asks for a GPU")}
    )
    run.store.put(layout.request(run.run_id), canonical_json({"plan_digest": run.plan}))
    for index in range(30):
        run.add(index, 0, reward=float(index % 2), files={"trial.log": b"l", "agent/a b+ü.txt": b"x" * index})
        run.add(index, 1, outcome="errored", error="agent_crashed", final=False)
        run.add(index, 1, 1, outcome="errored", error="agent_crashed", files={})
    run.add(30, 0, files={})
    run.start(31, 0)
    run.add(32, 0, 0, outcome="infrastructure", error="sandbox_failed", final=False)
    run.start(32, 0, 1)
    gone = run.add(33, 0, files={"trial.log": b"l", "kept.log": b"k"})
    run.store.delete(run.folder(33, 0, 0, gone.ref.uid) + "trial.log")
    for index in (34, 35):
        uid = run.start(index, 0)
        run.store.put(run.folder(index, 0, 0, uid) + layout.TRIAL, b"{broken")
    run.store.put(layout.try_folder(run.run_id, 77, 0, 0, run.uid()) + layout.STARTED, b"{}")
    failed = BuildRecord(
        image_key=digest_of("image 36"),
        ok=False,
        reference="registry.invalid/env:36",
        step="RUN make",
        message="no make",
    )
    run.store.put(layout.build_record(run.run_id, failed.image_key, "aa"), failed.canonical())
    return run


def mirror(source: Store, target: Store) -> None:
    for entry in source.list(""):
        target.put(entry.key, source.get(entry.key))


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_bundle_is_the_same_and_comes_down_whole(tmp_path: Path, s3: S3Store) -> None:
    run = eventful(tmp_path / "store")
    mirror(run.store, s3)
    for store in (run.store, s3):
        result = merge(run.run_id, store)
        assert (result.state.phase, result.state.result_state) == (RunPhase.COMPLETED, ResultState.READY)
    s3.put(layout.bundle(run.run_id, "evidence/9/0/left-behind"), b"by an earlier merge")
    merge(run.run_id, s3)
    down = download_bundle(run.run_id, s3, tmp_path / "down")
    assert content(down.path) == content(run.bundle)
    assert (down.files, down.bytes) == (
        len(content(run.bundle)),
        sum(len(data) for data in content(run.bundle).values()),
    )
    checked = verify(down.path)
    assert checked.ok, checked
    assert len(read_trials(down.path)) == len(read_trials(run.bundle)) == 62


def test_results_and_the_files_of_a_task_before_and_after_the_merge(tmp_path: Path, s3: S3Store) -> None:
    run = eventful(tmp_path / "store")
    mirror(run.store, s3)
    before = survey(run.run_id, s3, engine="argo")
    assert before.results().result == survey(run.run_id, run.store, engine="argo").results().result
    assert before.bundle_ref is None
    with pytest.raises(UsageError, match="has no merged results yet"):
        download_bundle(run.run_id, s3, tmp_path / "down")
    task = download_task(run.run_id, s3, 3, tmp_path / "down")
    assert content(task.path) == content(run.store.path(f"{layout.trials(run.run_id)}3"))
    merge(run.run_id, s3)
    after = survey(run.run_id, s3, engine="argo")
    assert after.results().result.coverage == before.results().result.coverage
    assert after.bundle_ref == f"{s3.name}/{layout.bundle(run.run_id)}".rstrip("/")


def test_a_merge_that_the_store_cuts_off_leaves_no_half_bundle(tmp_path: Path, s3: S3Store) -> None:
    run = eventful(tmp_path / "store")
    mirror(run.store, s3)
    merge(run.run_id, s3)

    class Failing(S3Store):
        def __init__(self) -> None:
            self.__dict__.update(s3.__dict__)

        def copy(self, source: str, target: str) -> None:
            raise PlatformError("store_write_failed", "the disk is full")

    with pytest.raises(PlatformError, match="the disk is full"):
        merge(run.run_id, Failing())
    assert not s3.exists(layout.bundle(run.run_id, "run.json"))
    assert b'"failed"' in s3.get(layout.state(run.run_id))
    merge(run.run_id, s3)
    assert s3.exists(layout.bundle(run.run_id, "run.json"))


@pytest.mark.parametrize("way", ["get", "open", "copy"])
def test_evidence_that_vanishes_meanwhile_is_told(
    tmp_path: Path, s3: S3Store, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lifecycle rules of a bucket may remove what a listing still showed."""
    run = make_run(tmp_path / "store", 2)
    for index in range(2):
        run.add(index)
    mirror(run.store, s3)
    real: Callable[..., object] = getattr(s3, way)

    def vanish(key: str, *rest: str) -> object:
        if "/trials/1/" in key:
            raise KeyNotFound(key)
        return real(key, *rest)

    monkeypatch.setattr(s3, way, vanish)
    if way == "copy":
        with pytest.raises(PlatformError, match="vanished while it was merged"):
            merge(run.run_id, s3)
        return
    result = merge(run.run_id, s3)
    assert result.state.phase is RunPhase.COMPLETED
    codes = [problem.code for problem in result.facts.problems]
    assert codes == (["record_broken"] if way == "get" else ["evidence_missing"])


def test_who_watches_reads_each_record_once(tmp_path: Path, s3: S3Store) -> None:
    run = make_run(tmp_path / "store", 12)
    for index in range(10):
        run.add(index)
    mirror(run.store, s3)
    counting = Counting(s3)
    seen: Seen = {}

    def look() -> int:
        counting.calls.clear()
        coverage = survey(run.run_id, counting, engine="argo", plan=run.plan, seen=seen).gathered.coverage
        assert coverage.total == 12
        return coverage.scored

    assert look() == 10
    first = counting.calls["get"]
    assert look() == 10
    assert counting.calls["get"] == first - 10
    added = run.add(10)
    mirror(run.store, s3)
    assert look() == 11
    folder = run.folder(10, 0, 0, added.ref.uid)
    s3.put(folder + layout.TRIAL, run.record(10, uid=added.ref.uid, reward=0.125).canonical())
    look()
    assert [trial.reward for trial in survey(run.run_id, s3, engine="argo", seen=seen).gathered.trials][
        -1
    ] == 0.125
