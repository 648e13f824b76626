"""Every kind of damage to a bundle is found, and what only a reader must be told is told."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argo_harbor.bundle.files import Listed, pretty
from argo_harbor.bundle.merge import merge
from argo_harbor.bundle.verify import verify
from argo_harbor.model.bundle import Manifest
from argo_harbor.model.plan import Skipped
from tests.support.records import Run, make_run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run = make_run(tmp_path, 2)
    run.add(0)
    run.add(1, reward=0.0)
    merge(run.run_id, run.store, plan=run.plan)
    return run


def codes(run: Run) -> list[str]:
    return [problem.code for problem in verify(run.bundle).problems]


def sign(run: Run) -> None:
    """Make the manifest right again, as whoever forges a bundle would."""
    manifest = json.loads((run.bundle / "manifest.json").read_text())
    for entry in manifest["files"]:
        with (run.bundle / entry["path"]).open("rb") as source:
            found = Listed.of(source)
        entry.update(size=found.size, sha256=found.sha256)
    (run.bundle / "manifest.json").write_bytes(pretty(Manifest.from_data(manifest)))


def rewrite(run: Run, name: str, change: Callable[[list[Any]], object]) -> None:
    """Change the rows of a JSONL file, or the one document of a JSON file, and sign."""
    path = run.bundle / name
    rows = (
        [json.loads(text) for text in path.read_text().splitlines()]
        if name.endswith("l")
        else [json.loads(path.read_text())]
    )
    change(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    sign(run)


def replace(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def link_away(path: Path) -> None:
    path.symlink_to("run.json")


def test_a_sound_bundle(run: Run) -> None:
    document = verify(run.store.path(f"runs/{run.run_id}"))
    assert document.as_data() == {"ok": True, "reportable": True, "problems": []}


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda bundle: (bundle / "run.json").unlink(), "bundle_unreadable"),
        (lambda bundle: (bundle / "manifest.json").unlink(), "bundle_unreadable"),
        (lambda bundle: (bundle / "manifest.json").write_text("{"), "bundle_unreadable"),
        (lambda bundle: (bundle / "summary.json").unlink(), "bundle_unreadable"),
        (lambda bundle: (bundle / "evidence/harbor/0/0/trial.log").unlink(), "file_missing"),
        (lambda bundle: (bundle / "extra.txt").write_text("?"), "file_unlisted"),
        (lambda bundle: (bundle / "report.html").write_text("?"), "file_changed"),
        (lambda bundle: (bundle / "run.json").write_text('{"run_id": "run-another"}'), "file_changed"),
        (lambda bundle: (bundle / "run.json").write_text(""), "bundle_unreadable"),
        (lambda bundle: replace(bundle / "summary.json", os.mkfifo), "file_irregular"),
        (
            lambda bundle: replace(bundle / "report.html", lambda at: at.symlink_to("run.json")),
            "file_irregular",
        ),
        (lambda bundle: (bundle / "evidence/more").symlink_to("harbor"), "file_irregular"),
    ],
)
def test_damaged_files(run: Run, damage: Callable[[Path], object], code: str) -> None:
    damage(run.bundle)
    document = verify(run.bundle)
    assert code in [problem.code for problem in document.problems]
    assert not document.ok
    assert not document.reportable


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("trials.jsonl", lambda rows: rows.append(rows[0]), "row_doubled"),
        ("scores.jsonl", lambda rows: rows.append(rows[0]), "row_doubled"),
        ("scores.jsonl", lambda rows: rows.pop(), "coverage_mismatch"),
        ("tasks.jsonl", lambda rows: rows.pop(), "row_orphaned"),
        ("trials.jsonl", lambda rows: rows.pop(), "row_orphaned"),
        ("trials.jsonl", lambda rows: rows[0].update(status="splendid"), "bundle_unreadable"),
        ("metadata.json", lambda rows: rows[0].update(nonsense=1), "bundle_unreadable"),
        (
            "summary.json",
            lambda rows: rows[0]["metric_coverage"]["harbor_reward"]["reward"].update(scored=9),
            "coverage_mismatch",
        ),
        (
            "metadata.json",
            lambda rows: rows[0]["target"]["config"]["argo_harbor"]["coverage"].update(total=9),
            "coverage_mismatch",
        ),
        (
            "metadata.json",
            lambda rows: rows[0]["target"]["config"].update(argo_harbor={"engine": 1}),
            "bundle_unreadable",
        ),
    ],
)
def test_rows_that_do_not_add_up(
    run: Run, name: str, change: Callable[[list[Any]], object], code: str
) -> None:
    rewrite(run, name, change)
    document = verify(run.bundle)
    assert code in [problem.code for problem in document.problems]
    assert not document.ok


def test_what_a_reader_must_be_told(tmp_path: Path) -> None:
    run = make_run(tmp_path, 4, skipped={3: Skipped(code="gpu_unsupported", message="no")})
    unfenced = {"engine": "local", "base": "preview", "network": "unfenced"}
    run.add(0, sandbox=unfenced)
    run.add(1)
    run.add(2, outcome="infrastructure", error="sandbox_failed")
    merge(run.run_id, run.store, plan=run.plan)
    document = verify(run.bundle)
    assert document.ok
    assert document.reportable
    told = {problem.code: problem.message for problem in document.problems}
    assert told == {
        "attempts_missing": "1 of 4 attempts are missing",
        "network_unfenced": "trials shared the host's network",
        "infrastructure_share": "1 of 4 attempts (25%) ended in infrastructure faults",
        "rewards_all_equal": "all 2 rewards are 1",
    }


def test_scores_that_must_not_be_reported(tmp_path: Path) -> None:
    run = make_run(tmp_path, 2)
    run.add(0, sandbox={"engine": "local", "base": "image", "network": "none"})
    run.add(1, rewards={"other": 0.0}, reward_key="other")
    merge(run.run_id, run.store, plan=run.plan)
    document = verify(run.bundle)
    assert (document.ok, document.reportable) == (True, False)
    assert set(codes(run)) == {"bases_mixed", "reward_keys_mixed"}


def test_a_run_without_any_score_is_not_reportable(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    merge(run.run_id, run.store, plan=run.plan)
    document = verify(run.bundle)
    assert (document.ok, document.reportable) == (True, False)
    assert "nothing_scored" in codes(run)
