"""What commands show of a run before, during and after, and that each document has its published shape."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from argo_harbor import schemas
from argo_harbor.bundle.merge import merge
from argo_harbor.bundle.results import Survey, survey
from argo_harbor.errors import UsageError
from argo_harbor.model.base import Model
from argo_harbor.model.bundle import METADATA_FILE
from argo_harbor.model.causes import Cause, Causes
from argo_harbor.model.plan import Skipped
from argo_harbor.model.states import ResultState, RunPhase
from argo_harbor.store import layout
from tests.support.records import Run, make_run


def look(run: Run) -> Survey:
    return survey(run.run_id, run.store, engine="local", plan=run.plan)


def checked(document: Model, name: str) -> dict[str, object]:
    data = json.loads(json.dumps(document.as_data()))
    jsonschema.validate(data, json.loads(schemas.schema_text(name)))
    return data  # type: ignore[no-any-return]


def test_before_any_trial(tmp_path: Path) -> None:
    run = make_run(tmp_path, 2)
    status = checked(look(run).status(), "run-document-1")
    assert status["counts"] == {"image_ready": 2}
    assert look(run).run.phase is RunPhase.ACCEPTED
    assert look(run).run.bundle_dir is None
    (first, _) = look(run).tasks().tasks
    assert (first.detail, first.trials[0].outcome, first.trials[0].error) == ("", None, None)


def test_while_trials_run(tmp_path: Path) -> None:
    run = make_run(tmp_path, 3, skipped={2: Skipped(code="gpu_unsupported", message="no GPU")})
    run.add(0, rewards={"reward": 0.5, "speed": 3.0})
    run.add(1, 0, 0, outcome="infrastructure", error="sandbox_failed", final=False)
    run.start(1, 0, 1)
    found = look(run)
    assert found.run.phase is RunPhase.RUNNING
    assert found.run.result_state is ResultState.PENDING
    tasks = checked(found.tasks(), "tasks-document-1")["tasks"]
    assert [(task["phase"], task["detail"]) for task in tasks] == [  # type: ignore[attr-defined]
        ("succeeded", ""),
        ("registered", "running"),
        ("failed", "gpu_unsupported: no GPU"),
    ]
    assert tasks[1]["trials"] == [  # type: ignore[index]
        {"attempt": 0, "try": 1, "outcome": None, "rewards": None, "error": None}
    ]
    results = found.results()
    assert results.tasks[0].trials[0].rewards == {"reward": 0.5, "speed": 3.0}
    assert results.result.bundle_ref is None
    assert results.result.summary.scores.scores[0].mean == 0.5


def test_after_the_merge_tasks_tell_its_causes(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    causes = Causes(attempts={(0, 0): Cause("image_pull_failed", "there is none")})
    merge(run.run_id, run.store, plan=run.plan, causes=causes)
    (task,) = look(run).tasks().tasks
    assert task.detail == "image_pull_failed: there is none"
    assert task.trials[0].error is not None
    assert task.trials[0].error.code == "image_pull_failed"


@pytest.mark.parametrize("text", [b"{}", b"no JSON"])
def test_a_bundle_that_cannot_be_read_tells_nothing(tmp_path: Path, text: bytes) -> None:
    run = make_run(tmp_path, 1)
    merge(run.run_id, run.store, plan=run.plan)
    run.store.put(layout.bundle(run.run_id, METADATA_FILE), text)
    (task,) = look(run).tasks().tasks
    assert task.detail == "not_started: no try of it has started"


def test_after_the_merge(tmp_path: Path) -> None:
    run = make_run(tmp_path, 3, attempts=2)
    run.add(0, 0)
    run.add(0, 1, reward=0.0)
    run.add(1, 0, outcome="unscored", error="reward_missing")
    run.start(2)
    merge(run.run_id, run.store, plan=run.plan, ended_by=RunPhase.CANCELLED)
    found = look(run)
    assert found.run.phase is RunPhase.CANCELLED
    assert found.run.bundle_dir == str(run.bundle)
    results = checked(found.results(), "results-document-1")
    assert [task["result"]["summary"] for task in results["tasks"]] == [  # type: ignore[attr-defined]
        {"trial_count": 2, "mean": 0.5, "coverage": {"total": 2, "scored": 2, "failed": 0, "missing": 0}},
        {"trial_count": 1, "mean": None, "coverage": {"total": 2, "scored": 0, "failed": 1, "missing": 1}},
        {"trial_count": 0, "mean": None, "coverage": {"total": 2, "scored": 0, "failed": 0, "missing": 2}},
    ]
    merged = json.loads((run.bundle / "summary.json").read_text())
    assert results["result"]["summary"] == merged  # type: ignore[index]
    assert results["result"]["bundle_ref"] == str(run.bundle)  # type: ignore[index]
    lost = found.tasks().tasks[2].trials[0]
    assert lost.error is not None
    assert lost.error.code == "trial_lost"
    assert found.tasks().tasks[1].detail == "cancelled: the run was cancelled before it started"


def test_an_unknown_run(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    with pytest.raises(UsageError) as caught:
        survey("run-none", run.store, engine="local")
    assert caught.value.code == "unknown_run"
