"""Downloads: whole or not there, taken up where they were cut off, and held against the manifest."""

from __future__ import annotations

from pathlib import Path

import pytest

from argo_harbor.bundle.merge import merge
from argo_harbor.engines.download import download_bundle, download_task
from argo_harbor.errors import PlatformError, UsageError
from argo_harbor.store import layout
from argo_harbor.store.directory import DirectoryStore
from tests.support.records import Run, make_run
from tests.support.stores import Counting


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = make_run(tmp_path, 2)
    made.add(0, rewards={"reward": 1.0})
    made.add(1, rewards={"reward": 0.0})
    merge(made.run_id, made.store, plan=made.plan)
    return made


def test_the_whole_bundle(run: Run, tmp_path: Path) -> None:
    done = download_bundle(run.run_id, run.store, tmp_path / "out")
    assert done.path == tmp_path / "out/agent-eval-results"
    there = sorted(path.relative_to(done.path).as_posix() for path in done.path.rglob("*") if path.is_file())
    assert there == sorted(
        path.relative_to(run.bundle).as_posix() for path in run.bundle.rglob("*") if path.is_file()
    )
    assert done.files == len(there)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["agent-eval-results"]


class Breaking(Counting):
    """A store that breaks off after some files."""

    left = 3

    def get_file(self, key: str, path: Path) -> None:
        if not self.left:
            raise PlatformError("store_unreadable", "the connection broke", "try again")
        self.left -= 1
        super().get_file(key, path)


def test_what_was_brought_before_a_break_is_not_brought_again(run: Run, tmp_path: Path) -> None:
    breaking = Breaking(run.store)
    with pytest.raises(PlatformError, match="connection broke"):
        download_bundle(run.run_id, breaking, tmp_path / "out")
    assert not (tmp_path / "out/agent-eval-results").exists()
    counting = Counting(run.store)
    done = download_bundle(run.run_id, counting, tmp_path / "out")
    assert 0 < counting.calls["get_file"] < done.files
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["agent-eval-results"]


def test_leftovers_of_another_bundle_do_not_stay(run: Run, tmp_path: Path) -> None:
    partial = tmp_path / "out/.agent-eval-results.partial"
    partial.mkdir(parents=True)
    (partial / "old.txt").write_text("of an earlier merge")
    (partial / "summary.json").write_text("of an earlier merge")
    done = download_bundle(run.run_id, run.store, tmp_path / "out")
    assert not (done.path / "old.txt").exists()
    assert (done.path / "summary.json").read_bytes() == (run.bundle / "summary.json").read_bytes()


def test_a_file_that_is_not_what_the_manifest_says(run: Run, tmp_path: Path) -> None:
    run.store.put(layout.bundle(run.run_id, "summary.json"), b"{}")
    with pytest.raises(PlatformError, match=r"summary\.json .* not what the bundle's manifest says"):
        download_bundle(run.run_id, run.store, tmp_path / "out")
    assert (download_bundle(run.run_id, run.store, tmp_path / "raw", checked=False)).files
    run.store.put(layout.bundle(run.run_id, "manifest.json"), b"no manifest")
    assert download_bundle(run.run_id, run.store, tmp_path / "out").files


def test_one_task_before_and_after_the_merge(tmp_path: Path) -> None:
    run = make_run(tmp_path, 2)
    with pytest.raises(UsageError, match="no trial of task 1 has started"):
        download_task(run.run_id, run.store, 1, tmp_path / "out")
    run.start(1)
    done = download_task(run.run_id, run.store, 1, tmp_path / "out")
    assert [path.name for path in done.path.rglob("*.json")] == ["started.json"]


def test_runs_without_results(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    for name in ("run-0000000000000000", "../x"):
        with pytest.raises(UsageError):
            download_bundle(name, store, tmp_path / "out")
