"""Phases of tasks and runs while a run goes on, and once it is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from argo_harbor.bundle import state
from argo_harbor.bundle.collect import Collector
from argo_harbor.bundle.facts import TaskFacts
from argo_harbor.bundle.gather import gather
from argo_harbor.model.build import BuildRecord
from argo_harbor.model.plan import Skipped
from argo_harbor.model.states import ResultState, RunPhase, TaskPhase
from argo_harbor.store import layout
from tests.support.records import Run, digest_of, make_run


def tasks(run: Run) -> tuple[TaskFacts, ...]:
    return gather(Collector(run.run_id, run.store, run.head, run.plan)).tasks


def test_while_it_runs(tmp_path: Path) -> None:
    run = make_run(tmp_path, 5, attempts=2, skipped={4: Skipped(code="gpu_unsupported", message="no")})
    run.add(0, 0)
    run.add(0, 1)
    run.add(1, 0)
    run.start(2, 0)
    record = BuildRecord(image_key=digest_of("image 3"), ok=False, reference="r")
    found = tasks(run)
    phases = [state.task_phase(task, over=False) for task in found]
    assert phases == ["succeeded", "registered", "registered", "image_ready", "failed"]
    assert state.task_phase(found[3], over=False, building=True) is TaskPhase.IMAGE_BUILDING
    assert state.phase_now(found) is RunPhase.RUNNING
    assert state.phase_now(found[3:]) is RunPhase.ACCEPTED
    run.store.put(layout.build_record(run.run_id, record.image_key, "u"), record.canonical())
    assert state.task_phase(tasks(run)[3], over=False) is TaskPhase.FAILED


@pytest.mark.parametrize(
    ("ended_by", "unfinished"),
    [
        (None, TaskPhase.FAILED),
        (RunPhase.CANCELLED, TaskPhase.CANCELLED),
        (RunPhase.EXPIRED, TaskPhase.EXPIRED),
    ],
)
def test_once_it_is_over(tmp_path: Path, ended_by: RunPhase | None, unfinished: TaskPhase) -> None:
    run = make_run(tmp_path, 3, attempts=2, skipped={2: Skipped(code="gpu_unsupported", message="no")})
    run.add(0, 0)
    run.start(1, 0)
    found = tasks(run)
    phases = [state.task_phase(task, over=True, ended_by=ended_by) for task in found]
    assert phases == [TaskPhase.SUCCEEDED, unfinished, TaskPhase.FAILED]
    assert state.end_of(found, ended_by) is (ended_by or RunPhase.COMPLETED)
    assert state.end_of(found[1:], None) is RunPhase.FAILED
    counts = state.count(phases)
    assert list(counts) == [phase for phase in TaskPhase if phase in phases]
    assert state.result_of(counts) is ResultState.READY
    assert state.result_of({TaskPhase.FAILED: 3}) is ResultState.NONE
