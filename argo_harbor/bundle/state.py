"""The phases of tasks and runs, derived from what a run has left in the store. Pure; used on both engines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from argo_harbor.bundle.facts import TaskFacts
from argo_harbor.model.build import BUILD_ERRORS
from argo_harbor.model.states import ResultState, RunPhase, TaskPhase

SETTLED = frozenset({*BUILD_ERRORS, "image_pull_failed", "service_failed"})
"""Codes of missing attempts that no cancel or deadline has kept from running."""


def task_phase(
    task: TaskFacts, *, over: bool, ended_by: RunPhase | None = None, building: bool = False
) -> TaskPhase:
    """Where a task is.

    `over`: nothing of the run will start any more. `ended_by`: `cancelled` or `expired` when that ended it.
    `building`: its image is being built, as far as the engine knows.
    """
    if task.entry.skipped is not None:
        return TaskPhase.FAILED
    if over:
        if any(trial.final for trial in task.trials):
            return TaskPhase.SUCCEEDED
        if ended_by is None or not is_cut(task):
            return TaskPhase.FAILED
        return TaskPhase.CANCELLED if ended_by is RunPhase.CANCELLED else TaskPhase.EXPIRED
    if not task.missing and all(trial.final for trial in task.trials):
        return TaskPhase.SUCCEEDED
    if task.started:
        return TaskPhase.REGISTERED
    if task.missing and all(attempt.code in SETTLED for attempt in task.missing):
        return TaskPhase.FAILED
    return TaskPhase.IMAGE_BUILDING if building else TaskPhase.IMAGE_READY


def is_cut(task: TaskFacts) -> bool:
    """Whether something planned for the task could still have run when the run ended."""
    if task.entry.skipped is not None:
        return False
    return any(attempt.code not in SETTLED for attempt in task.missing) or any(
        not trial.final for trial in task.trials
    )


def end_of(tasks: Iterable[TaskFacts], ended_by: RunPhase | None) -> RunPhase:
    """The terminal phase of a run.

    A cancel or deadline that came when everything had been decided ended nothing: then the results decide.
    """
    tasks = tuple(tasks)
    if ended_by is not None and any(is_cut(task) for task in tasks):
        return ended_by
    succeeded = any(task_phase(task, over=True) is TaskPhase.SUCCEEDED for task in tasks)
    return RunPhase.COMPLETED if succeeded else RunPhase.FAILED


def phase_now(tasks: Iterable[TaskFacts]) -> RunPhase:
    """The phase of a run that is not over."""
    return RunPhase.RUNNING if any(task.started for task in tasks) else RunPhase.ACCEPTED


def result_of(counts: Mapping[TaskPhase, int]) -> ResultState:
    """The result state once the merge is done."""
    return ResultState.READY if counts.get(TaskPhase.SUCCEEDED) else ResultState.NONE


def count(phases: Iterable[TaskPhase]) -> dict[TaskPhase, int]:
    """Tasks by phase, in the order of the phases; phases without a task are left out."""
    counted = Counter(phases)
    return {phase: counted[phase] for phase in TaskPhase if counted[phase]}
