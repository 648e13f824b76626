"""Reading bundles back, also ones that others have been at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argo_harbor.bundle.merge import merge
from argo_harbor.bundle.read import read_trials
from argo_harbor.errors import PlatformError
from tests.support.records import Run, make_run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run = make_run(tmp_path / "store", 1)
    run.add(0, files={"trial.log": b"x", "artifacts/result.txt": b"42"})
    merge(run.run_id, run.store, plan=run.plan)
    return run


def test_refs_become_paths(run: Run) -> None:
    for place in (run.bundle, run.bundle.parent, str(run.bundle)):
        (trial,) = read_trials(place)
        ref = trial.evidence.descriptors["artifact:artifacts/result.txt"].ref
        assert ref is not None
        assert Path(ref).read_bytes() == b"42"


def refer_to(run: Run, ref: str | None) -> None:
    path = run.bundle / "trials.jsonl"
    row = json.loads(path.read_text())
    row["evidence"]["descriptors"]["logs"]["ref"] = ref
    path.write_text(json.dumps(row) + "\n")


@pytest.mark.parametrize(
    "ref", ["/etc/passwd", "../../../etc/passwd", "evidence/../../x", "a\0b", "..", "a//b"]
)
def test_a_ref_that_leaves_the_bundle_is_refused(run: Run, ref: str) -> None:
    refer_to(run, ref)
    with pytest.raises(PlatformError, match="outside the bundle") as caught:
        read_trials(run.bundle)
    assert caught.value.code == "bundle_unreadable"


def test_a_link_that_leaves_the_bundle_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    (run.bundle / "evidence/out").symlink_to(tmp_path / "secret")
    refer_to(run, "evidence/out")
    with pytest.raises(PlatformError, match="outside the bundle"):
        read_trials(run.bundle)


def test_evidence_without_a_file_stays_so(run: Run) -> None:
    refer_to(run, None)
    assert read_trials(run.bundle)[0].evidence.descriptors["logs"].ref is None


def test_no_bundle_half_a_bundle_broken_rows(run: Run, tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="not whole"):
        read_trials(tmp_path)
    (run.bundle / "trials.jsonl").write_text("{}\n")
    with pytest.raises(PlatformError, match="line 1"):
        read_trials(run.bundle)
    (run.bundle / "trials.jsonl").unlink()
    with pytest.raises(PlatformError, match="No such file"):
        read_trials(run.bundle)
    (run.bundle / "run.json").unlink()
    with pytest.raises(PlatformError, match="not whole"):
        read_trials(run.bundle)


def test_a_folder_that_cannot_be_looked_into(tmp_path: Path) -> None:
    with pytest.raises(PlatformError) as found:
        read_trials(tmp_path / ("b" * 300))
    assert found.value.code == "bundle_unreadable"
