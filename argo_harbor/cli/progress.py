"""What a local run shows while it runs: a live line per trial on a terminal, plain lines elsewhere.

Results go to stdout, everything that moves goes to stderr.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

from argo_harbor.cli import output
from argo_harbor.cli.published import MOST_TASKS, published_lines
from argo_harbor.engines import events
from argo_harbor.model.states import Outcome

if TYPE_CHECKING:
    from types import TracebackType

    from rich.live import Live as RichLive
    from rich.table import Table

    from argo_harbor.cli.request import Planned
    from argo_harbor.model.record import TrialRecord

REFRESH_PER_SECOND = 4
SHOWN_TRIALS = 25
"""Live rows at most; the cap of a run may be larger than a screen."""

_VERDICT = {
    Outcome.SCORED: "scored",
    Outcome.UNSCORED: "unscored",
    Outcome.ERRORED: "errored",
    Outcome.INFRASTRUCTURE: "infrastructure",
    Outcome.CANCELLED: "cancelled",
    Outcome.EXPIRED: "expired",
}


class Live:
    """A listener for an engine's events; call it with each, inside a `with` block."""

    def __init__(
        self, planned: Planned, *, rerun: str, follow: str, quiet_stdout: bool, picture: bool
    ) -> None:
        """`rerun` and `follow` are command lines, `RUN` standing for the run's id; `picture` says whether
        trials run here and are shown live."""
        self._planned = planned
        self._rerun = rerun
        self._follow = follow
        self._picture = picture
        self._quiet = quiet_stdout
        self._rich: RichLive | None = None
        self._running: dict[tuple[int, int], tuple[str, str, float]] = {}
        self._builds: dict[str, float] = {}
        self._done = 0
        self._trials = 0
        self._cap = 0

    def __enter__(self) -> Self:
        if self._picture and sys.stderr.isatty():
            from rich.live import Live as RichLive

            self._rich = RichLive(
                get_renderable=self._render,
                console=output.live_console(),
                refresh_per_second=REFRESH_PER_SECOND,
                transient=True,
                redirect_stdout=sys.stdout.isatty(),
            )
            self._rich.start()
        tasks = len(self._planned.plan.parts)
        if tasks > MOST_TASKS:
            self._say(f"publishing what the store lacks of {tasks} tasks")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._rich is not None:
            self._rich.stop()

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.Published():
                for line in published_lines(event.taskset):
                    self._result(line)
            case events.AlreadyRunning():
                self._say(f"{event.run} is already running on the same taskset")
            case events.RunFound():
                self._result(f"Run {event.run} is there already: the key belongs to just this request")
                self._result(f"View evaluation run: {self._follow.replace('RUN', event.run)}")
            case events.RunAccepted():
                self._accepted(event)
            case events.BuildStarted():
                self._builds[event.image_key] = time.monotonic()
                self._say(f"building the base of {output.some(event.tasks)}")
            case events.BuildFinished():
                self._builds.pop(event.image_key, None)
                if event.error:
                    self._say(f"base of {output.some(event.tasks)} failed: {event.error}")
            case events.TrialStarted():
                self._running[event.index, event.attempt] = (self._label(event), "sandbox", time.monotonic())
            case events.TrialPhase():
                label, _, began = self._running.get(
                    (event.index, event.attempt), (self._label(event), "", time.monotonic())
                )
                self._running[event.index, event.attempt] = (label, event.phase, began)
            case events.TrialFinished():
                self._finished(event)
            case events.GateDecided():
                verdict = "held, the rest runs" if event.passed else f"failed: {'; '.join(event.reasons)}"
                self._say(f"canary {verdict}")
            case events.Stopping():
                self._say(f"{event.reason}: ending {event.running} running trials")
            case events.MergeStarted():
                self._say("merging results")

    def _accepted(self, event: events.RunAccepted) -> None:
        self._trials, self._cap = event.trials, event.cap
        say = self._result
        base = f"{event.base} ({event.base_reason})" if event.base_reason else event.base
        say(
            f"Run {event.run} accepted: {event.tasks} tasks, {event.trials} trials, {event.cap} at once; "
            f"base {base}, network {event.network}"
        )
        say(f"Rerun these tasks: {self._rerun}")
        say(f"View evaluation run: {self._follow.replace('RUN', event.run)}")

    def _result(self, text: str) -> None:
        """A line of the result itself, unless stdout is a document."""
        (self._say if self._quiet else output.line)(text)

    def _finished(self, event: events.TrialFinished) -> None:
        label, _, began = self._running.pop(
            (event.index, event.attempt), (self._label(event), "", time.monotonic())
        )
        if not event.retrying:
            self._done += 1
        verdict = _verdict(event.record, event.note)
        again = ", trying again" if event.retrying else ""
        took = output.duration(time.monotonic() - began)
        self._say(f"[{self._done}/{self._trials}] {label}: {verdict} in {took}{again}")

    def _label(self, event: events.TrialStarted | events.TrialPhase | events.TrialFinished) -> str:
        attempts = self._planned.plan.head.n_attempts
        attempt = f" attempt {event.attempt}" if attempts > 1 else ""
        return f"{event.task}{attempt}" + (f" try {event.try_ + 1}" if event.try_ else "")

    def _say(self, text: str) -> None:
        if self._rich is None:
            output.note(text)
        else:
            from rich.text import Text

            self._rich.console.print(Text(output.printable(text)))

    def _render(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        now = time.monotonic()
        rows = sorted(self._running.values(), key=lambda row: row[2])
        for label, phase, began in rows[:SHOWN_TRIALS]:
            grid.add_row(Text(output.printable(label)), phase, output.duration(now - began))
        if len(rows) > SHOWN_TRIALS:
            grid.add_row(f"and {len(rows) - SHOWN_TRIALS} more", "", "")
        waiting = self._trials - self._done - len(rows)
        state = f"{self._done}/{self._trials} done, {len(rows)} running, {max(waiting, 0)} waiting for a slot"
        building = f", {len(self._builds)} bases building" if self._builds else ""
        grid.add_row(Text(state + building, style="dim"), "", "")
        return grid


def _verdict(record: TrialRecord | None, note: str) -> str:
    if record is None:
        return note or "no record"
    if record.outcome is Outcome.SCORED and record.rewards is not None:
        reward = record.rewards.get(record.reward_key)
        shown = output.amount(reward) if reward is not None else _rewards(record.rewards)
        return f"{shown}" + (f" ({record.error.code})" if record.error else "")
    reason = f" ({record.error.code})" if record.error else ""
    return _VERDICT[record.outcome] + reason


def _rewards(rewards: dict[str, float]) -> str:
    return ", ".join(f"{key} {output.amount(value)}" for key, value in sorted(rewards.items()))
