"""The merge on a real store: every outcome, every way to be missing, repeats, late records, interruptions."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argo_harbor.bundle.merge import merge, read_state
from argo_harbor.bundle.read import read_trials
from argo_harbor.bundle.verify import verify
from argo_harbor.errors import CODES, PlatformError, UsageError
from argo_harbor.model.base import canonical_json
from argo_harbor.model.build import BuildRecord
from argo_harbor.model.bundle import Manifest, Metadata, RunFile, ScoreRow, Summary, TaskRow
from argo_harbor.model.causes import Cause, Causes
from argo_harbor.model.plan import Skipped
from argo_harbor.model.states import ResultState, RunPhase, TaskPhase
from argo_harbor.store import layout
from argo_harbor.store.directory import DirectoryStore
from tests.support.records import Run, digest_of, make_run, stamp


def content(run: Run) -> dict[str, bytes]:
    """Every file of the bundle."""
    return {
        str(path.relative_to(run.bundle)): path.read_bytes()
        for path in sorted(run.bundle.rglob("*"))
        if path.is_file()
    }


def rows(run: Run, name: str) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (run.bundle / name).read_text().splitlines()]


def facts(run: Run) -> dict[str, Any]:
    return json.loads((run.bundle / "metadata.json").read_text())["target"]["config"]["argo_harbor"]


OUTCOMES = [
    # what the record says, status of the trial, status of the score, key of error_trial_ids, scored
    ({}, "completed", "completed", None, True),
    ({"reward": 0.0}, "completed", "completed", None, True),
    ({"error": "agent_timeout"}, "partial", "completed", "agent_timeout", True),
    ({"error": "agent_exit_nonzero", "reward": 0.0}, "partial", "completed", "agent_exit_nonzero", True),
    ({"outcome": "unscored", "error": "reward_missing"}, "partial", "failed", "reward_missing", False),
    ({"outcome": "unscored", "error": "reward_invalid"}, "partial", "failed", "reward_invalid", False),
    (
        {"outcome": "unscored", "error": "reward_key_missing"},
        "partial",
        "failed",
        "reward_key_missing",
        False,
    ),
    ({"outcome": "unscored", "error": "reward_tampered"}, "partial", "failed", "reward_tampered", False),
    ({"outcome": "errored", "error": "verifier_timeout"}, "partial", "failed", "verifier_timeout", False),
    ({"outcome": "errored", "error": "agent_setup_failed"}, "partial", "failed", "agent_setup_failed", False),
    ({"outcome": "errored", "error": "agent_crashed"}, "partial", "failed", "agent_crashed", False),
    ({"outcome": "infrastructure", "error": "sandbox_failed"}, "failed", "failed", "sandbox_failed", False),
]


@pytest.mark.parametrize(
    ("record", "status", "score", "error", "scored"), OUTCOMES, ids=[str(row[0]) for row in OUTCOMES]
)
def test_each_outcome_in_the_bundle(
    tmp_path: Path, record: dict[str, Any], status: str, score: str, error: str | None, scored: bool
) -> None:
    run = make_run(tmp_path, 1)
    run.add(0, **record)
    result = merge(run.run_id, run.store, plan=run.plan)
    (trial,) = rows(run, "trials.jsonl")
    (row,) = rows(run, "scores.jsonl")
    summary = json.loads((run.bundle / "summary.json").read_text())
    reward = record.get("reward", 1.0)
    assert trial["status"] == status
    assert (trial["error"] or {}).get("type") == error
    assert row["status"] == score
    assert row["outputs"] == ([{"name": "reward", "value": reward}] if scored else [])
    assert summary["error_trial_ids"] == ({error: [trial["id"]]} if error else {})
    assert summary["metric_coverage"]["harbor_reward"]["reward"] == {
        "total": 1, "scored": int(scored), "failed": int(not scored), "missing": 0,
    }  # fmt: skip
    by_name = {entry["name"]: entry for entry in summary["scores"]["scores"]}
    assert by_name["harbor_reward.reward"]["mean"] == (reward if scored else "NaN")
    assert result.state.phase is RunPhase.COMPLETED
    assert result.state.counts == {TaskPhase.SUCCEEDED: 1}
    assert result.state.result_state is ResultState.READY


def test_rewards_that_an_unscored_record_carries_enter_no_mean(tmp_path: Path) -> None:
    run = make_run(tmp_path, 2)
    run.add(0, reward=0.0)
    run.add(1, outcome="unscored", error="reward_tampered", rewards={"reward": 1.0})
    merge(run.run_id, run.store, plan=run.plan)
    summary = json.loads((run.bundle / "summary.json").read_text())
    assert summary["scores"]["scores"][0]["mean"] == 0.0
    assert rows(run, "trials.jsonl")[1]["metadata"]["reward"] is None
    assert summary["task_metric_values"]["acme/task-001"]["harbor_reward.reward"] == [
        {"trial_id": "acme/task-001__0", "value_type": "missing", "value": None}
    ]


def test_the_files_have_the_published_shape(tmp_path: Path) -> None:
    run = make_run(tmp_path, 2, attempts=2)
    run.add(0, 0, usage={"prompt_tokens": 5, "completion_tokens": 2, "cost_usd": 0.5})
    run.add(0, 1, reward=0.0, links=[{"path": "artifacts/l", "target": "/etc/shadow"}])
    run.add(1, 0, rejected=[{"key": "speed", "reason": "not a number"}])
    merge(run.run_id, run.store, plan=run.plan)
    bundle = run.bundle
    RunFile.from_json((bundle / "run.json").read_bytes())
    metadata = Metadata.from_json((bundle / "metadata.json").read_bytes())
    Summary.from_json((bundle / "summary.json").read_bytes())
    for row in rows(run, "tasks.jsonl"):
        TaskRow.from_data(row)
    scores = [ScoreRow.from_data(row) for row in rows(run, "scores.jsonl")]
    trials = read_trials(bundle)
    assert [trial.id for trial in trials] == ["acme/task-000__0", "acme/task-000__1", "acme/task-001__0"]
    assert scores[0].id == f"{run.run_id}:acme/task-000:acme/task-000__0:harbor_reward"
    assert trials[0].measurements.total_tokens == 7
    assert trials[1].evidence.metadata["links"] == [{"path": "artifacts/l", "target": "/etc/shadow"}]
    assert trials[2].metadata.reward_rejections == {"speed": "not a number"}
    assert scores[2].diagnostics[0].message == "speed: not a number"
    assert metadata.started_at == stamp(0)
    assert metadata.labels["base"] == "preview"
    for name in ("run.json", "metadata.json", "summary.json"):
        text = (bundle / name).read_text()
        assert text == json.dumps(json.loads(text), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    for row in (bundle / "trials.jsonl").read_text().splitlines():
        assert row == json.dumps(json.loads(row), sort_keys=True, ensure_ascii=False)


def test_the_manifest_names_every_file(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    run.add(0, files={"trial.log": b"l", "agent/trajectory.json": b"{}", "artifacts/a b.bin": b"\0"})
    merge(run.run_id, run.store, plan=run.plan)
    found = content(run)
    manifest = Manifest.from_json(found.pop("manifest.json"))
    found.pop("run.json")
    assert {entry.path: (entry.size, entry.sha256) for entry in manifest.files} == {
        path: (len(data), hashlib.sha256(data).hexdigest()) for path, data in found.items()
    }
    assert found["evidence/harbor/0/0/artifacts/a b.bin"] == b"\0"


def test_credentials_in_agent_arguments_are_blanked(tmp_path: Path) -> None:
    plan = make_run(tmp_path, 1).head
    agent = plan.agent.model_copy(
        update={"kwargs": {"api_key": "s3cr3t", "deep": [{"token": "t0k"}], "n": 1}}
    )
    run = make_run(tmp_path, 1, agent=agent)
    run.add(0)
    merge(run.run_id, run.store, plan=run.plan)
    text = (run.bundle / "metadata.json").read_text()
    assert "s3cr3t" not in text
    assert "t0k" not in text
    assert json.loads(text)["target"]["config"]["agent_kwargs"]["n"] == 1


def test_only_the_deciding_try_counts(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    run.add(0, 0, 0, outcome="errored", error="agent_crashed", final=False)
    run.add(0, 0, 2, reward=0.25)
    run.add(0, 0, 1, reward=0.75)
    merge(run.run_id, run.store, plan=run.plan)
    (trial,) = rows(run, "trials.jsonl")
    assert trial["metadata"]["argo_harbor"]["try"] == 1
    assert trial["metadata"]["argo_harbor"]["tries"] == 3
    assert trial["metadata"]["reward"] == 0.75


def test_without_a_final_try_the_latest_errored_one_counts(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    run.add(0, 0, 0, outcome="errored", error="agent_crashed", final=False)
    run.add(0, 0, 1, outcome="errored", error="agent_setup_failed", final=False)
    run.start(0, 0, 2)
    result = merge(run.run_id, run.store, plan=run.plan)
    (trial,) = rows(run, "trials.jsonl")
    assert trial["error"]["type"] == "agent_setup_failed"
    # None of its tries is final, so the task has not succeeded.
    assert result.state.counts == {TaskPhase.FAILED: 1}


def missing(run: Run, index: int = 0) -> tuple[str, str]:
    """Code and cause of the task's first missing attempt."""
    attempt = rows(run, "tasks.jsonl")[index]["metadata"]["missing"][0]
    return attempt["code"], attempt["cause"]


def test_missing_never_started(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    result = merge(
        run.run_id,
        run.store,
        plan=run.plan,
        causes=Causes(others=Cause("not_started", "the gate stopped the run")),
    )
    assert missing(run) == ("not_started", "the gate stopped the run")
    assert result.state.phase is RunPhase.FAILED
    assert result.state.result_state is ResultState.NONE


def test_a_later_merge_remembers_what_the_cluster_has_forgotten(tmp_path: Path) -> None:
    run = make_run(tmp_path, 2)
    run.start(1)
    known = Causes(attempts={(0, 0): Cause("image_pull_failed", "there is none")})
    merge(run.run_id, run.store, plan=run.plan, causes=known)
    before = [rows(run, "tasks.jsonl"), rows(run, "trials.jsonl")]
    forgotten = Causes(others=Cause("not_started", "its workflow is gone"))
    merge(run.run_id, run.store, plan=run.plan, causes=forgotten)
    assert missing(run) == ("image_pull_failed", "there is none")
    assert [rows(run, "tasks.jsonl"), rows(run, "trials.jsonl")] == before


def test_what_an_early_merge_did_not_know_does_not_outlive_it(tmp_path: Path) -> None:
    run = make_run(tmp_path, 2)
    run.add(0)
    merge(run.run_id, run.store, plan=run.plan)
    assert missing(run, 1) == ("not_started", "no try of it has started")
    merge(run.run_id, run.store, plan=run.plan, ended_by=RunPhase.CANCELLED)
    assert missing(run, 1) == ("cancelled", "the run was cancelled before it started")


def test_missing_lost(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    run.start(0)
    merge(run.run_id, run.store, plan=run.plan)
    assert missing(run) == ("trial_lost", "try 0 started and left no record")


def test_missing_cut_off(tmp_path: Path) -> None:
    run = make_run(tmp_path, 2)
    run.add(0, outcome="cancelled", error="cancelled", final=False)
    run.add(1, outcome="infrastructure", error={"code": "sandbox_failed", "message": "evicted"}, final=False)
    merge(run.run_id, run.store, plan=run.plan)
    assert missing(run, 0) == ("cancelled", "try 0 ended cancelled and none followed")
    assert missing(run, 1) == ("sandbox_failed", "evicted")
    assert rows(run, "trials.jsonl") == []


def test_a_cancelled_record_never_decides_even_when_it_calls_itself_final(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    run.add(0, outcome="cancelled", error="cancelled", final=True)
    result = merge(run.run_id, run.store, plan=run.plan, ended_by=RunPhase.CANCELLED)
    assert result.state.counts == {TaskPhase.CANCELLED: 1}


def test_missing_skipped(tmp_path: Path) -> None:
    run = make_run(tmp_path, 2, skipped={1: Skipped(code="gpu_unsupported", message="needs a GPU")})
    run.add(0)
    result = merge(run.run_id, run.store, plan=run.plan)
    assert missing(run, 1) == ("gpu_unsupported", "needs a GPU")
    assert result.state.coverage is not None
    assert (result.state.coverage.total, result.state.coverage.missing) == (2, 1)
    assert result.state.phase is RunPhase.COMPLETED


def build(run: Run, index: int, uid: str, **changes: Any) -> None:
    key = digest_of(f"image {index}")
    record = BuildRecord(image_key=key, reference="registry.invalid/env:0", **changes)
    run.store.put(layout.build_record(run.run_id, key, uid), record.canonical())


def test_missing_image_not_built(tmp_path: Path) -> None:
    run = make_run(tmp_path, 3)
    build(run, 0, "a", ok=False, step="RUN make", message="no rule")
    build(run, 1, "a", ok=False, step="RUN make", message="lost")
    build(run, 1, "b", ok=True)
    run.store.put(layout.build_record(run.run_id, "x", "y"), b"no json")
    run.add(2)
    result = merge(run.run_id, run.store, plan=run.plan, ended_by=RunPhase.CANCELLED)
    assert missing(run, 0) == ("image_build_failed", "RUN make: no rule")
    assert missing(run, 1) == ("cancelled", "the run was cancelled before it started")
    assert result.state.counts == {
        TaskPhase.FAILED: 1, TaskPhase.CANCELLED: 1, TaskPhase.SUCCEEDED: 1,
    }  # fmt: skip


def test_a_cancel_that_came_after_everything_was_decided_ends_nothing(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    run.add(0)
    assert merge(run.run_id, run.store, plan=run.plan, ended_by=RunPhase.CANCELLED).state.phase is (
        RunPhase.COMPLETED
    )


@pytest.mark.parametrize("phase", [RunPhase.CANCELLED, RunPhase.EXPIRED])
def test_a_cut_run_keeps_what_succeeded_and_stays_cut(tmp_path: Path, phase: Any) -> None:
    run = make_run(tmp_path, 2)
    run.add(0)
    first = merge(run.run_id, run.store, plan=run.plan, ended_by=phase).state
    again = merge(run.run_id, run.store, plan=run.plan).state
    assert first == again
    assert (first.phase, first.result_state) == (phase, ResultState.READY)
    assert missing(run, 1)[0] == phase.value


def test_a_cancel_mark_says_who_ended_the_run(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    run.store.put(layout.cancel_mark(run.run_id, "1"), b"{}")
    assert merge(run.run_id, run.store, plan=run.plan).state.phase is RunPhase.CANCELLED


def tampered(run: Run, **changes: Any) -> bytes:
    uid = run.uid()
    data = run.record_data(0, uid=uid) | changes
    run.store.put(run.folder(0, 0, 0, uid) + layout.TRIAL, canonical_json(data))
    return canonical_json(data)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"schema_version": "trial-2", "news": 1}, "record_newer"),
        ({"outcome": "perfect"}, "record_broken"),
        ({"task_name": "acme/other"}, "record_foreign"),
        ({"rewards": {"other": 1.0}}, "record_broken"),
        ({"rewards": None}, "record_broken"),
        ({"files": ["../../../request.json"]}, "record_broken"),
        ({"files": ["/etc/passwd"]}, "record_broken"),
        ({"started_at": "yesterday"}, "record_broken"),
        ({"started_at": "2026-01-02T03:04:05"}, "record_broken"),
    ],
)
def test_a_record_that_cannot_be_trusted_is_not_there(
    tmp_path: Path, changes: dict[str, Any], code: str
) -> None:
    run = make_run(tmp_path, 1)
    tampered(run, **changes)
    merge(run.run_id, run.store, plan=run.plan)
    assert missing(run)[0] == "trial_lost"
    assert [problem["code"] for problem in facts(run)["problems"]] == [code]


@pytest.mark.parametrize("field", ["run", "plan", "index", "attempt", "try", "uid"])
def test_a_record_of_another_try_is_not_there(tmp_path: Path, field: str) -> None:
    run = make_run(tmp_path, 1)
    uid = run.uid()
    ref = run.ref(0, 0, 0, uid)
    ref[field] = 7 if isinstance(ref[field], int) else "f" * 64
    run.store.put(
        run.folder(0, 0, 0, uid) + layout.TRIAL, canonical_json(run.record_data(0, uid=uid) | {"ref": ref})
    )
    merge(run.run_id, run.store, plan=run.plan)
    assert [problem["code"] for problem in facts(run)["problems"]] == ["record_foreign"]


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{", b'"x"', b"\xff", b"[" * 100_000, b"{}" + b" " * (5 << 20)]
)
def test_bytes_that_are_no_record_are_not_there(tmp_path: Path, data: bytes) -> None:
    run = make_run(tmp_path, 1)
    uid = run.start(0)
    run.store.put(run.folder(0, 0, 0, uid) + layout.TRIAL, data)
    merge(run.run_id, run.store, plan=run.plan)
    assert facts(run)["problems"][0]["code"] in ("record_broken", "record_newer")
    assert missing(run)[0] == "trial_lost"


def test_an_error_that_a_record_forgot_is_internal(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    run.add(0, outcome="errored")
    merge(run.run_id, run.store, plan=run.plan)
    assert rows(run, "trials.jsonl")[0]["error"]["type"] == "internal"


def test_an_attempt_that_was_never_planned_is_reported_and_not_counted(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    run.add(0)
    run.add(0, 5)
    merge(run.run_id, run.store, plan=run.plan)
    assert len(rows(run, "trials.jsonl")) == 1
    assert [problem["code"] for problem in facts(run)["problems"]] == ["attempt_unplanned"]


def test_evidence_that_is_not_there_is_reported(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    uid = run.start(0)
    folder = run.folder(0, 0, 0, uid)
    run.store.put(folder + "trial.log", b"x")
    record = run.record(0, uid=uid, files=["agent/gone.txt", "trial.log"])
    run.store.put(folder + layout.TRIAL, record.canonical())
    merge(run.run_id, run.store, plan=run.plan)
    assert [problem["code"] for problem in facts(run)["problems"]] == ["evidence_missing"]
    (trial,) = rows(run, "trials.jsonl")
    assert "agent/gone.txt" not in json.dumps(trial)
    assert verify(run.bundle).ok


def test_merging_again_writes_the_same_bytes(tmp_path: Path) -> None:
    run = make_run(tmp_path, 3, attempts=2)
    run.add(0, 1, reward=0.5)
    run.add(1, 0)
    run.start(2)
    first = merge(run.run_id, run.store, plan=run.plan)
    before = content(run)
    assert merge(run.run_id, run.store, plan=run.plan) == first
    assert content(run) == before


def test_a_late_record_is_taken_in(tmp_path: Path) -> None:
    run = make_run(tmp_path, 2)
    run.add(0)
    uid = run.start(1)
    assert merge(run.run_id, run.store, plan=run.plan).state.coverage.missing == 1  # type: ignore[union-attr]
    run.add(1, uid=uid, files={"late.log": b"late"})
    assert merge(run.run_id, run.store, plan=run.plan).state.coverage.missing == 0  # type: ignore[union-attr]
    assert verify(run.bundle).ok
    assert (run.bundle / "evidence/harbor/1/0/late.log").read_bytes() == b"late"


def test_files_of_an_older_bundle_go(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    run.add(0, 0, 1, files={"old.log": b"old"})
    merge(run.run_id, run.store, plan=run.plan)
    run.add(0, 0, 0, files={"new.log": b"new"})
    (run.bundle / "stray.txt").write_text("?")
    merge(run.run_id, run.store, plan=run.plan)
    assert {name for name in content(run) if name.endswith((".log", ".txt"))} == {
        "evidence/harbor/0/0/new.log"
    }
    assert verify(run.bundle).ok


def test_a_damaged_bundle_is_repaired(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    run.add(0)
    merge(run.run_id, run.store, plan=run.plan)
    before = content(run)
    (run.bundle / "scores.jsonl").write_text("{}\n")
    (run.bundle / "evidence/harbor/0/0/trial.log").unlink()
    assert not verify(run.bundle).ok
    merge(run.run_id, run.store, plan=run.plan)
    assert content(run) == before


def test_the_plan_is_found_without_being_named(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    with pytest.raises(UsageError, match="no run") as caught:
        merge(run.run_id, run.store)
    assert caught.value.code == "unknown_run"
    run.add(0)
    assert merge(run.run_id, run.store).state.plan == run.plan
    run.store.put(layout.request(run.run_id), b"no json")
    assert merge(run.run_id, run.store).state.plan == run.plan
    run.store.put(layout.request(run.run_id), canonical_json({"plan_digest": run.plan}))
    assert merge(run.run_id, run.store).state.plan == run.plan


def test_a_plan_that_is_not_what_its_digest_says_is_unreadable(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    key = layout.plan_head(run.plan)
    run.store.put(key, run.store.get(key) + b" ")
    with pytest.raises(PlatformError) as caught:
        merge(run.run_id, run.store, plan=run.plan)
    assert caught.value.code == "plan_unreadable"
    with pytest.raises(PlatformError) as caught:
        merge(run.run_id, run.store, plan="0" * 64)
    assert caught.value.code == "plan_unreadable"


def in_a_process(work: Callable[[], object]) -> int:
    """Run it in a child of this process; returns the child's exit status, negative for a signal."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except PlatformError as error:
            os._exit(list(CODES).index(error.code))
        finally:
            os._exit(120)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def limited(run: Run, scratch: Path, limit: int) -> None:
    """Merge with no file larger than `limit` bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    merge(run.run_id, run.store, plan=run.plan, scratch=scratch)


@pytest.mark.parametrize("limit", [100, 2000, 12_000])
def test_a_disk_that_takes_no_more_leaves_no_bundle(tmp_path: Path, limit: int) -> None:
    run = make_run(tmp_path / "store", 4)
    for index in range(4):
        run.add(index)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    status = in_a_process(lambda: limited(run, scratch, limit))
    assert list(CODES)[status] == "store_write_failed"
    assert not (run.bundle / "run.json").exists()
    assert [problem.code for problem in verify(run.bundle).problems] == ["bundle_unreadable"]
    assert list(scratch.iterdir()) == []
    state = read_state(run.run_id, run.store)
    assert state is None or state.result_state is ResultState.FAILED
    assert merge(run.run_id, run.store, plan=run.plan).state.result_state is ResultState.READY
    assert verify(run.bundle).ok


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_store_on_a_full_disk_leaves_no_bundle(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        run = make_run(disk, 2)
        run.add(0)
        run.add(1)
        merge(run.run_id, run.store, plan=run.plan)
        with pytest.raises(OSError, match="space"):
            (disk / "filler").write_bytes(b"x" * (1 << 20))
        with pytest.raises(PlatformError) as caught:
            merge(run.run_id, run.store, plan=run.plan)
        assert caught.value.code == "store_write_failed"
        assert not verify(run.bundle).ok
        (disk / "filler").unlink()
        merge(run.run_id, run.store, plan=run.plan)
        assert verify(run.bundle).ok
    finally:
        subprocess.run(["umount", str(disk)], check=True)


class KilledStore(DirectoryStore):
    """Kills its process at the n-th change."""

    def __init__(self, root: Path, left: int) -> None:
        super().__init__(root)
        self.left = left

    def count(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def put(self, key: str, data: bytes) -> None:
        self.count()
        super().put(key, data)

    def put_file(self, key: str, path: Path) -> None:
        self.count()
        super().put_file(key, path)

    def copy(self, source: str, target: str) -> None:
        self.count()
        super().copy(source, target)

    def delete(self, key: str) -> None:
        super().delete(key)
        self.count()


@pytest.mark.parametrize("operation", [1, 2, 4, 6, 8, 9, 10])
def test_a_kill_at_any_step_leaves_no_half_bundle(tmp_path: Path, operation: int) -> None:
    run = make_run(tmp_path, 1)
    run.add(0, files={"a.log": b"a", "b.log": b"b"})
    merge(run.run_id, run.store, plan=run.plan)
    whole = content(run)
    killed = KilledStore(tmp_path, operation)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    status = in_a_process(lambda: merge(run.run_id, killed, plan=run.plan, scratch=scratch))
    assert status == -signal.SIGKILL
    assert not (run.bundle / "run.json").exists()
    assert not verify(run.bundle).ok
    merge(run.run_id, run.store, plan=run.plan)
    assert content(run) == whole
