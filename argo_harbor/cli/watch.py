"""Following a run to its end: a live table in a terminal, plain lines of what changed elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

from argo_harbor.cli import output
from argo_harbor.cli.show import brief, trial_text
from argo_harbor.errors import EXIT_FAILED, EXIT_OK, PlatformError
from argo_harbor.model.states import RunPhase

if TYPE_CHECKING:
    from rich.console import RenderableType

    from argo_harbor.bundle.results import Survey
    from argo_harbor.engines.base import Engine
    from argo_harbor.model.documents import TaskLine

LOOK_SECONDS = 2.0
_MAX_PAUSE = 30.0
SHOWN_TASKS = 30
"""Live rows at most; tasks that are on their way come first."""
_ORDER = ("registered", "image_building", "image_ready", "failed", "cancelled", "expired", "succeeded")


def follow(engine: Engine, run_id: str, *, picture: bool) -> int:
    """Return when the run is over: 0 when it completed, else 1.

    Faults of store or cluster are told and waited out: the run itself does not depend on who watches.
    """
    watcher = _Picture() if picture and sys.stderr.isatty() else _Lines(silent=not picture)
    pause = LOOK_SECONDS
    with watcher:
        while True:
            began = time.monotonic()
            try:
                survey = engine.survey(run_id)
            except PlatformError as error:
                if not error.retryable or error.code == "plan_unreadable":
                    raise
                watcher.trouble(error)
                pause = min(pause * 2, _MAX_PAUSE)
            else:
                watcher.show(survey)
                if survey.ended is not None:
                    return EXIT_OK if survey.run.phase is RunPhase.COMPLETED else EXIT_FAILED
                # A large run takes long to look at: never more than a third of the time.
                pause = max(LOOK_SECONDS, 2 * (time.monotonic() - began))
            time.sleep(pause)


class _Lines:
    """One line for each thing that changed."""

    def __init__(self, *, silent: bool) -> None:
        self._silent = silent
        self._said: dict[str, str] = {}

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def trouble(self, error: PlatformError) -> None:
        self._say("trouble", f"{error.code}: {error.message}; looking again")

    def show(self, survey: Survey) -> None:
        self._said.pop("trouble", None)
        if self._silent:
            return
        for step in survey.observed.steps:
            detail = f": {brief(step.detail)}" if step.detail else ""
            self._say(f"step {step.name}", f"{step.name} {step.state}{detail}")
        for task in survey.tasks().tasks:
            self._say(f"task {task.index}", f"{task.name}: {_words(task)}")
        self._say("run", _total(survey))

    def _say(self, key: str, text: str) -> None:
        if self._said.get(key) != text:
            self._said[key] = text
            if not self._silent or key == "trouble":
                output.note(text)


class _Picture(_Lines):
    """The same as a table that is drawn anew."""

    def __init__(self) -> None:
        super().__init__(silent=True)
        from rich.live import Live

        self._live = Live(console=output.live_console(), auto_refresh=False, transient=True)

    def __enter__(self) -> _Picture:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def trouble(self, error: PlatformError) -> None:
        from rich.text import Text

        self._live.update(Text(output.printable(f"{error.message}; looking again")), refresh=True)

    def show(self, survey: Survey) -> None:
        self._live.update(_drawn(survey), refresh=True)


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
