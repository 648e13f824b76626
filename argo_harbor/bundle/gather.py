"""One pass over a run's records: facts of every task, and each whole record to whoever writes it out."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from argo_harbor.bundle.collect import MAX_PROBLEMS, Collected, Collector
from argo_harbor.bundle.facts import TaskFacts, TrialFacts
from argo_harbor.model.bundle import CoverageCounts, MissingTask, Problem
from argo_harbor.model.plan import PlanHead


@dataclass(frozen=True)
class Gathered:
    """Everything of a run that fits into memory."""

    run_id: str
    plan_digest: str
    head: PlanHead
    tasks: tuple[TaskFacts, ...]
    """Every task of the plan, by index."""
    problems: tuple[Problem, ...]

    @cached_property
    def trials(self) -> tuple[TrialFacts, ...]:
        """Every decided attempt, by task and attempt."""
        return tuple(trial for task in self.tasks for trial in task.trials)

    @cached_property
    def coverage(self) -> CoverageCounts:
        return coverage_of(self.tasks)

    @property
    def missing(self) -> tuple[MissingTask, ...]:
        return tuple(
            MissingTask(index=task.entry.index, task=task.name, attempts=tuple(task.missing))
            for task in self.tasks
            if task.missing
        )

    @property
    def started_at(self) -> str | None:
        return min((trial.started_at for trial in self.trials), default=None)

    @property
    def finished_at(self) -> str | None:
        return max((trial.finished_at for trial in self.trials), default=None)

    def distinct(self, name: str) -> tuple[str, ...]:
        """The values that one field of the trials takes, sorted, without the empty one."""
        return tuple(sorted({str(getattr(trial, name)) for trial in self.trials} - {""}))


def coverage_of(tasks: tuple[TaskFacts, ...]) -> CoverageCounts:
    """Counts planned attempts: scored, failed (a record without a score), missing (no record)."""
    scored = sum(trial.scored for task in tasks for trial in task.trials)
    decided = sum(len(task.trials) for task in tasks)
    missing = sum(len(task.missing) for task in tasks)
    return CoverageCounts(total=decided + missing, scored=scored, failed=decided - scored, missing=missing)


@contextmanager
def _collection_paused() -> Iterator[None]:
    """Records hold no cycles; the cycle collector would only walk all facts again for every few hundred."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


Stage = Callable[[Iterable[Collected]], Iterable[Collected]]
"""Sees every planned attempt with its whole record, and hands it on, perhaps with fewer files."""


def gather(collector: Collector, stage: Stage = lambda attempts: attempts) -> Gathered:
    """Read the run once; after `stage` each whole record is let go.

    Raises PlatformError `plan_unreadable`, and whatever `stage` raises.
    """
    tasks: dict[int, TaskFacts] = {}
    problems: list[Problem] = []
    with _collection_paused():
        for collected in stage(collector.attempts()):
            entry = collected.entry
            tasks.setdefault(entry.index, TaskFacts(entry)).add(collected)
            problems.extend(collected.problems[: MAX_PROBLEMS - len(problems)])
    return Gathered(
        run_id=collector.run_id,
        plan_digest=collector.plan_digest,
        head=collector.head,
        tasks=tuple(tasks.values()),
        problems=(*problems, *collector.unplanned)[:MAX_PROBLEMS],
    )
