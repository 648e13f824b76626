"""Runs all trials of a plan on this machine: bases first, canary before the rest, never more than the cap.

One event loop on the main thread. SIGINT and SIGTERM end the running trials; a spent budget ends them as
well, but lets the merge follow.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from argo_harbor.bundle.canary import gate
from argo_harbor.engines import events
from argo_harbor.engines.attempt import AttemptRunner
from argo_harbor.engines.builds import Builds
from argo_harbor.engines.launch import STOP_SECONDS, Launcher
from argo_harbor.model.plan import RunPlan, TaskPlan
from argo_harbor.model.record import TrialRecord
from argo_harbor.store.base import Store

EXPIRY_SECONDS = STOP_SECONDS + 2.0
"""What runners get to notice the spent budget by themselves before they are ended."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)
Stop = Literal["", "interrupted", "expired"]


class Clock:
    """The run's budget: it starts with the first trial, so builds do not count."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadline: float | None = None

    def start(self) -> float:
        """The deadline as Unix time in seconds."""
        if self._deadline is None:
            self._deadline = time.time() + self._seconds
        return self._deadline

    @property
    def spent(self) -> bool:
        return self._deadline is not None and time.time() >= self._deadline

    @property
    def left(self) -> float | None:
        """Seconds, None before the first trial."""
        return None if self._deadline is None else self._deadline - time.time()


@dataclass
class Schedule:
    """One run."""

    run: str
    plan: RunPlan
    store: Store
    launcher: Launcher
    builds: Builds
    cap: int
    progress: events.Progress
    stopped: Stop = ""
    refused: tuple[str, ...] = ()
    """Why the canary gate kept the rest from running."""
    _clock: Clock = field(init=False)
    _stop: asyncio.Event = field(init=False)

    async def execute(self) -> None:
        """Run everything that may run. Afterwards `stopped` and `refused` say what kept trials from it."""
        self._clock = Clock(self.plan.head.limits.timeout_seconds)
        self._stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        # Only the main thread may listen; a run started from another one is ended by its process alone.
        signals = SIGNALS if threading.current_thread() is threading.main_thread() else ()
        for number in signals:
            loop.add_signal_handler(number, self._interrupt)
        working = asyncio.create_task(self._work())
        watching = asyncio.create_task(self._watch())
        try:
            await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                await self._end(working)
            await working
        except ExceptionGroup as group:
            raise _first(group) from group
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            for number in signals:
                loop.remove_signal_handler(number)

    def _interrupt(self) -> None:
        self.stopped = "interrupted"
        self._stop.set()

    async def _watch(self) -> None:
        """Ends when the run must: asked to, or out of time."""
        while not self._stop.is_set():
            left = self._clock.left
            if left is not None and left <= 0:
                self.stopped = self.stopped or "expired"
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), min(left if left is not None else 1.0, 1.0))

    async def _end(self, working: asyncio.Task[None]) -> None:
        if self.stopped:
            self.progress(events.Stopping(self.stopped, self.launcher.running))
        if self.stopped == "expired":
            # Runners keep the same clock and record their trials as expired themselves.
            asked = asyncio.create_task(self._stop.wait())
            await asyncio.wait({working, asked}, timeout=EXPIRY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            asked.cancel()
        await self.builds.cancel()
        await self.launcher.stop()

    def _is_stopping(self) -> bool:
        return bool(self.stopped) or self._clock.spent

    async def _work(self) -> None:
        head = self.plan.head
        canary = [part for part in self.plan.parts if part.index in head.canary]
        rest = [part for part in self.plan.parts if part.index not in head.canary]
        if canary:
            records = await self._run_all(canary)
            if self._is_stopping():
                return
            self.refused = gate(records)
            if rest:
                self.progress(events.GateDecided(not self.refused, self.refused))
            if self.refused:
                return
        await self._run_all(rest)

    async def _run_all(self, parts: Iterable[TaskPlan]) -> list[tuple[str, TrialRecord | None]]:
        """Every attempt at these tasks; a task whose base does not build leaves no record."""
        runner = AttemptRunner(
            run=self.run,
            plan=self.plan.digest,
            head=self.plan.head,
            store=self.store,
            launcher=self.launcher,
            progress=self.progress,
            stopping=self._is_stopping,
            deadline=self._clock.start,
        )
        slots = asyncio.Semaphore(self.cap)
        records: list[tuple[str, TrialRecord | None]] = []

        async def one(part: TaskPlan, attempt: int) -> None:
            failed = await self.builds.failure(part)
            if failed:
                self._not_built(part, attempt, failed)
                records.append((part.name, None))
                return
            async with slots:
                if not self._is_stopping():
                    records.append((part.name, await runner.run_attempt(part, attempt)))

        # Attempt by attempt, so that every task has been tried once before any is tried twice.
        attempts = range(self.plan.head.n_attempts)
        async with asyncio.TaskGroup() as group:
            for attempt in attempts:
                for part in parts:
                    group.create_task(one(part, attempt))
        return records

    def _not_built(self, part: TaskPlan, attempt: int, failed: str) -> None:
        note = f"image_build_failed: {failed.rpartition(chr(10))[2]}"
        self.progress(
            events.TrialFinished(part.index, part.name, attempt, 0, None, retrying=False, note=note)
        )


def _first(group: ExceptionGroup[Exception]) -> Exception:
    """The first error of a group: one is enough to say why a run broke off."""
    error: Exception = group
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error
