"""What commands show of a run, before and after its merge: the documents of status, tasks and results."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from argo_harbor.bundle import state
from argo_harbor.bundle.collect import Collector, Seen
from argo_harbor.bundle.earlier import earlier_causes
from argo_harbor.bundle.facts import TaskFacts
from argo_harbor.bundle.gather import Gathered, coverage_of, gather
from argo_harbor.bundle.merge import ended_earlier, read_state
from argo_harbor.bundle.observed import NOTHING, Observed
from argo_harbor.bundle.plans import find_plan, read_head
from argo_harbor.bundle.statistics import mean
from argo_harbor.bundle.summary import summarize
from argo_harbor.model.bundle import RUN_FILE
from argo_harbor.model.causes import NOTHING_KNOWN
from argo_harbor.model.documents import (
    Item,
    ResultsDocument,
    RunDocument,
    RunInfo,
    RunResult,
    TaskLine,
    TaskResult,
    TaskResultLine,
    TaskResultSummary,
    TasksDocument,
    TrialLine,
)
from argo_harbor.model.record import TrialError
from argo_harbor.model.run_state import RunState
from argo_harbor.model.states import ResultState, RunPhase, TaskPhase
from argo_harbor.store import layout
from argo_harbor.store.base import Store


@dataclass(frozen=True)
class Survey:
    """A run as the store shows it now."""

    gathered: Gathered
    ended: RunState | None
    """The state that a merge wrote, or that the engine knows; None while the run is not over."""
    engine: Literal["local", "argo"]
    bundle_ref: str | None
    observed: Observed = NOTHING
    user: str = ""
    """Who submitted it; empty where that is not known."""
    submitted_at: str = ""

    def phase_of(self, task: TaskFacts) -> TaskPhase:
        ended_by = None
        if self.ended is not None and self.ended.phase in (RunPhase.CANCELLED, RunPhase.EXPIRED):
            ended_by = self.ended.phase
        return state.task_phase(
            task,
            over=self.ended is not None,
            ended_by=ended_by,
            building=task.entry.index in self.observed.building,
        )

    @property
    def run(self) -> RunInfo:
        gathered = self.gathered
        # Sandboxes in a cluster have no other; here the first trial says what they stand on.
        bases = gathered.distinct("base") or (("image",) if self.engine == "argo" else ())
        return RunInfo.from_data(
            {
                "id": gathered.run_id,
                "phase": self.ended.phase if self.ended else state.phase_now(gathered.tasks),
                "result_state": self.ended.result_state if self.ended else ResultState.PENDING,
                "taskset_ref": gathered.head.taskset.ref,
                "plan_digest": gathered.plan_digest,
                "engine": self.engine,
                "profile": gathered.head.profile.name,
                "base": bases[0] if bases else None,
                "bundle_dir": self.bundle_ref,
                "user": self.user,
                "submitted_at": self.submitted_at,
            }
        )

    def status(self, warnings: Iterable[Item] = ()) -> RunDocument:
        """`runs submit`, `status`, `info`, `merge`."""
        counts = state.count(self.phase_of(task) for task in self.gathered.tasks)
        return RunDocument(run=self.run, counts=counts, warnings=tuple(warnings))

    def tasks(self) -> TasksDocument:
        """`runs tasks`."""
        return TasksDocument(tasks=tuple(self._line(task) for task in self.gathered.tasks))

    def results(self) -> ResultsDocument:
        """`runs results`: the merged summary, or the same computed from what is there so far."""
        return ResultsDocument(
            run=self.run,
            tasks=tuple(
                TaskResultLine(**dict(self._line(task)), result=_result(task)) for task in self.gathered.tasks
            ),
            result=RunResult(
                coverage=self.gathered.coverage,
                summary=summarize(self.gathered).summary,
                bundle_ref=self.bundle_ref,
            ),
        )

    def _line(self, task: TaskFacts) -> TaskLine:
        return TaskLine(
            index=task.entry.index,
            name=task.name,
            phase=self.phase_of(task),
            detail=self._detail(task),
            trials=_lines(task, over=self.ended is not None),
        )

    def _detail(self, task: TaskFacts) -> str:
        going = self.ended is None and not self.phase_of(task).terminal
        if going and task.entry.index in self.observed.details:
            return self.observed.details[task.entry.index]
        if self.ended is None and task.silent:
            return "running"
        if task.missing and (self.ended is not None or task.missing[0].code != "not_started"):
            return f"{task.missing[0].code}: {task.missing[0].cause}"
        return ""


def survey(
    run_id: str,
    store: Store,
    *,
    engine: Literal["local", "argo"],
    plan: str = "",
    ended: RunState | None = None,
    observed: Observed = NOTHING,
    seen: Seen | None = None,
) -> Survey:
    """Read a run. `ended` is how it ended as far as the engine knows; what a merge wrote comes first. `seen`
    spares whoever looks again the records that are unchanged.

    Raises UsageError `unknown_run`, PlatformError `plan_unreadable`.
    """
    digest = plan or find_plan(run_id, store)
    head = read_head(digest, store)
    merged = read_state(run_id, store)
    ended_by = ended_earlier(run_id, store) if merged else None
    if merged is None and ended is not None and ended.phase in (RunPhase.CANCELLED, RunPhase.EXPIRED):
        ended_by = ended.phase
    causes = earlier_causes(run_id, store) if merged else NOTHING_KNOWN
    gathered = gather(Collector(run_id, store, head, digest, ended_by, causes, seen=seen))
    return Survey(gathered, merged or ended, engine, bundle_ref(run_id, store), observed)


def bundle_ref(run_id: str, store: Store) -> str | None:
    """Absolute folder or URL of the run's bundle; None while there is no whole one."""
    if not store.exists(layout.bundle(run_id, RUN_FILE)):
        return None
    root = store.name if "://" in store.name else os.path.abspath(store.name)
    return f"{root.rstrip('/')}/{layout.bundle(run_id).rstrip('/')}"


def _lines(task: TaskFacts, *, over: bool) -> tuple[TrialLine, ...]:
    found = {
        trial.attempt: TrialLine.model_validate(
            {
                "attempt": trial.attempt,
                "try": trial.try_,
                "outcome": trial.outcome,
                "rewards": trial.rewards or None,
                "error": TrialError(code=trial.error, message=trial.message) if trial.error else None,
            }
        )
        for trial in task.trials
    }
    for gone in task.missing:
        known = over or task.entry.skipped is not None or gone.code in state.SETTLED
        error = TrialError(code=gone.code, message=gone.cause[:8192]) if known else None
        found[gone.attempt] = TrialLine.model_validate(
            {
                "attempt": gone.attempt,
                "try": max(gone.tries - 1, 0),
                "outcome": None,
                "rewards": None,
                "error": error,
            }
        )
    return tuple(line for _, line in sorted(found.items()))


def _result(task: TaskFacts) -> TaskResult:
    rewards = [trial.reward for trial in task.trials if trial.reward is not None]
    return TaskResult(
        summary=TaskResultSummary(
            trial_count=len(task.trials),
            coverage=coverage_of((task,)),
            mean=mean(rewards),
        )
    )
