"""Following a run to its end: a live table in a terminal, plain lines of what changed elsewhere."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

from argo_harbor.cli import output
from argo_harbor.cli.looking import Lines, Picture, look_until
from argo_harbor.cli.show import brief, trial_text
from argo_harbor.errors import EXIT_FAILED, EXIT_OK, PlatformError
from argo_harbor.model.states import RunPhase

if TYPE_CHECKING:
    from rich.console import RenderableType

    from argo_harbor.bundle.results import Survey
    from argo_harbor.engines.base import Engine
    from argo_harbor.model.documents import TaskLine

SHOWN_TASKS = 30
"""Live rows at most; tasks that are on their way come first."""
_ORDER = ("registered", "image_building", "image_ready", "failed", "cancelled", "expired", "succeeded")


def follow(engine: Engine, run_id: str, *, picture: bool) -> int:
    """Return when the run is over: 0 when it completed, else 1.

    Faults of store or cluster are told and waited out: the run itself does not depend on who watches.
    """
    watcher = _Picture() if picture and sys.stderr.isatty() else _Lines(silent=not picture)
    with watcher:
        survey = look_until(
            lambda: engine.survey(run_id),
            ended=lambda survey: survey.ended is not None,
            show=watcher.show,
            trouble=watcher.trouble,
            hopeless=lambda error: not error.retryable or error.code == "plan_unreadable",
        )
    return EXIT_OK if survey.run.phase is RunPhase.COMPLETED else EXIT_FAILED


class _Lines(Lines):
    """Of a run; `silent` about all but trouble."""

    def __init__(self, *, silent: bool) -> None:
        super().__init__()
        self._silent = silent

    def trouble(self, error: PlatformError) -> None:
        self.say("trouble", f"{error.code}: {error.message}; looking again")

    def show(self, survey: Survey) -> None:
        self.forget("trouble")
        if self._silent:
            return
        for step in survey.observed.steps:
            detail = f": {brief(step.detail)}" if step.detail else ""
            self.say(f"step {step.name}", f"{step.name} {step.state}{detail}")
        for task in survey.tasks().tasks:
            self.say(f"task {task.index}", f"{task.name}: {_words(task)}")
        self.say("run", _total(survey))


class _Picture(Picture):
    """The same as a table."""

    def trouble(self, error: PlatformError) -> None:
        self.write(f"{error.message}; looking again")

    def show(self, survey: Survey) -> None:
        self.draw(_drawn(survey))


def _drawn(survey: Survey) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    steps = Table.grid(padding=(0, 2))
    for step in survey.observed.steps:
        if step.state in ("running", "pending", "failed"):
            steps.add_row(Text(step.name), Text(step.state), Text(output.printable(brief(step.detail))))
    table = Table.grid(padding=(0, 2))
    lines = sorted(survey.tasks().tasks, key=lambda task: (_ORDER.index(task.phase.value), task.index))
    for task in lines[:SHOWN_TASKS]:
        table.add_row(
            Text(str(task.index), justify="right"),
            Text(output.printable(task.name)),
            Text(task.phase.value),
            Text(output.printable(_after_phase(task))),
        )
    if len(lines) > SHOWN_TASKS:
        left = Counter(task.phase.value for task in lines[SHOWN_TASKS:])
        table.add_row("", f"and {len(lines) - SHOWN_TASKS} more", "", _counted(left))
    return Group(steps, table, Text(_total(survey), style="dim"))


def _words(task: TaskLine) -> str:
    after = _after_phase(task)
    return f"{task.phase.value}, {after}" if after else task.phase.value


def _after_phase(task: TaskLine) -> str:
    if task.detail:
        return brief(task.detail)
    return "  ".join(trial_text(trial) for trial in task.trials if trial.outcome is not None or trial.error)


def _total(survey: Survey) -> str:
    run = survey.run
    counts = {phase.value: count for phase, count in survey.status().counts.items()}
    return f"Run {run.id} {run.phase.value}: {_counted(counts)}"


def _counted(counts: dict[str, int] | Counter[str]) -> str:
    return ", ".join(f"{count} {phase}" for phase, count in counts.items() if count)
