"""The merge: records in, bundle and final state out. The exit handler and `runs merge` call it.

It may be repeated at any time: the same records give the same bytes, and records that came late are taken in.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from argo_harbor.bundle import rows, state
from argo_harbor.bundle.collect import Collected, Collector
from argo_harbor.bundle.earlier import earlier_causes
from argo_harbor.bundle.evidence import folder_of
from argo_harbor.bundle.facts import TaskFacts
from argo_harbor.bundle.files import Draft, Lines, Listed, drafting, pretty
from argo_harbor.bundle.gather import Gathered, gather
from argo_harbor.bundle.plans import find_plan, read_head
from argo_harbor.bundle.report import render
from argo_harbor.bundle.summary import summarize
from argo_harbor.errors import PlatformError
from argo_harbor.model.bundle import (
    METADATA_FILE,
    REPORT_FILE,
    SCORES_FILE,
    SUMMARY_FILE,
    TASKS_FILE,
    TRIALS_FILE,
    Problem,
    RunFacts,
)
from argo_harbor.model.causes import NOTHING_KNOWN, Causes, EndedBy
from argo_harbor.model.run_state import RunState
from argo_harbor.model.states import ResultState, RunPhase, TaskPhase
from argo_harbor.store import layout
from argo_harbor.store.base import KeyNotFound, Store
from argo_harbor.store.parallel import in_order


class MergeResult(NamedTuple):
    state: RunState
    facts: RunFacts
    bundle: str
    """Store key of the bundle's folder, with a trailing slash."""


def merge(
    run_id: str,
    store: Store,
    *,
    plan: str = "",
    engine: str = "",
    ended_by: EndedBy | None = None,
    causes: Causes = NOTHING_KNOWN,
    scratch: Path | None = None,
) -> MergeResult:
    """Merge what the store holds of a run into its bundle, then write the run's final state.

    `plan` is the plan's digest; without it the run's request or its first try names it. `ended_by` says that
    a cancel or a deadline ended the run; a cancel mark in the store and an earlier merge's state say so too.
    `causes` is what else is known about attempts without a record. `scratch` is where the draft lies.

    Raises UsageError `unknown_run`, PlatformError `plan_unreadable` or `store_write_failed`; a bundle that
    was not finished then has no `run.json`, and the state, if it could be written, is `failed`.
    """
    digest = plan or find_plan(run_id, store)
    head = read_head(digest, store)
    ended_by = ended_by or causes.ended_by or ended_earlier(run_id, store)
    causes = replace(causes, unstarted=earlier_causes(run_id, store).unstarted)
    collector = Collector(run_id, store, head, digest, ended_by, causes)
    phase: RunPhase = ended_by or RunPhase.FAILED
    try:
        with drafting(run_id, store, scratch) as draft:
            gathered = _write_trials(collector, draft)
            if ended_by is None and _expired(gathered, causes):
                ended_by = RunPhase.EXPIRED
                _tell_expired(gathered)
            phase = state.end_of(gathered.tasks, ended_by)
            facts = _write_rest(gathered, draft, engine=engine, phase=phase)
            draft.publish()
    except PlatformError as error:
        failed = RunState(
            run=run_id, plan=digest, phase=phase, result_state=ResultState.FAILED, message=error.message
        )
        # The store may be what failed; then the missing state says the same, and the first error matters.
        with contextlib.suppress(PlatformError):
            store.put(layout.state(run_id), failed.canonical())
        raise
    over = _state(gathered, facts)
    store.put(layout.state(run_id), over.canonical())
    return MergeResult(over, facts, layout.bundle(run_id))


def ended_earlier(run_id: str, store: Store) -> EndedBy | None:
    """Whether a cancel mark or an earlier merge says that the run was cut short."""
    known = read_state(run_id, store)
    if known is not None and known.phase is RunPhase.EXPIRED:
        return RunPhase.EXPIRED
    if known is not None and known.phase is RunPhase.CANCELLED:
        return RunPhase.CANCELLED
    return RunPhase.CANCELLED if any(store.list(layout.cancel_marks(run_id))) else None


def read_state(run_id: str, store: Store) -> RunState | None:
    """The final state that a merge wrote; None while there is none that this version understands."""
    try:
        return RunState.from_json(store.get(layout.state(run_id)))
    except (KeyNotFound, ValidationError):
        return None


def _expired(gathered: Gathered, causes: Causes) -> bool:
    """Whether the run's time was spent: a try says so, or none started while the run was waiting for one."""
    if any(attempt.code == RunPhase.EXPIRED for task in gathered.tasks for attempt in task.missing):
        return True
    started = any(task.started for task in gathered.tasks)
    return not started and causes.seconds > gathered.head.limits.queue_timeout_seconds


def _tell_expired(gathered: Gathered) -> None:
    """Say so of the attempts that never started for no reason of their own."""
    for task in gathered.tasks:
        for place, attempt in enumerate(task.missing):
            if attempt.code in ("not_started", "node_collision_possible"):
                told = {"code": RunPhase.EXPIRED.value, "cause": "the run was expired before it started"}
                task.missing[place] = attempt.model_copy(update=told)


def _write_trials(collector: Collector, draft: Draft) -> Gathered:
    with draft.lines(TRIALS_FILE) as trials, draft.lines(SCORES_FILE) as scores:

        def write(attempts: Iterable[Collected]) -> Iterator[Collected]:
            take = partial(_take_evidence, draft)
            for taken in in_order(take, attempts, threads=collector.store.parallel):
                yield _write_trial(taken, collector, draft, trials, scores)

        return gather(collector, write)


class _Taken(NamedTuple):
    """An attempt and the files of its deciding try."""

    collected: Collected
    evidence: dict[str, Listed]
    """By path below the try's folder."""
    gone: tuple[str, ...]
    """Paths that the record names and the store does not hold, sorted."""


def _take_evidence(draft: Draft, collected: Collected) -> _Taken:
    record = collected.record
    if record is None:
        return _Taken(collected, {}, ())
    evidence = {}
    gone = set()
    for path in record.files:
        try:
            evidence[path] = draft.look_at(collected.folder + path)
        except KeyNotFound:
            gone.add(path)
    return _Taken(collected, evidence, tuple(sorted(gone)))


def _write_trial(
    taken: _Taken, collector: Collector, draft: Draft, trials: Lines, scores: Lines
) -> Collected:
    collected, record = taken.collected, taken.collected.record
    if record is None:
        return collected
    for path, listed in taken.evidence.items():
        draft.add_evidence(f"{folder_of(record)}/{path}", collected.folder + path, listed)
    if taken.gone:
        there = tuple(path for path in record.files if path in taken.evidence)
        record = record.model_copy(update={"files": there})
        gone = (
            Problem(code="evidence_missing", message=f"{collected.folder}{path} is not in the store")
            for path in taken.gone
        )
        collected = replace(collected, record=record, problems=(*collected.problems, *gone))
    trials.add(rows.trial_row(record, tries=collected.tries))
    scores.add(rows.score_row(record, run_id=collector.run_id, reward_key=collector.head.reward_key))
    return collected


def _write_rest(gathered: Gathered, draft: Draft, *, engine: str, phase: RunPhase) -> RunFacts:
    with draft.lines(TASKS_FILE) as tasks:
        for task in gathered.tasks:
            tasks.add(rows.task_row(task, head=gathered.head, phase=_phase(task, phase)))
    summary, intervals = summarize(gathered)
    facts = rows.run_facts(gathered, phase=phase, engine=engine, intervals=intervals)
    draft.write(METADATA_FILE, pretty(rows.metadata(gathered, facts)))
    draft.write(SUMMARY_FILE, pretty(summary))
    draft.write(REPORT_FILE, render(gathered, facts, summary).encode())
    return facts


def _phase(task: TaskFacts, run: RunPhase) -> TaskPhase:
    return state.task_phase(
        task, over=True, ended_by=run if run in (RunPhase.CANCELLED, RunPhase.EXPIRED) else None
    )


def _state(gathered: Gathered, facts: RunFacts) -> RunState:
    counts = state.count(_phase(task, facts.phase) for task in gathered.tasks)
    return RunState(
        run=gathered.run_id,
        plan=gathered.plan_digest,
        phase=facts.phase,
        result_state=state.result_of(counts),
        counts=counts,
        coverage=gathered.coverage,
    )
