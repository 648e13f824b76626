"""Runs one attempt at a task: its tries, one after the other, until one decides."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace

from pydantic import ValidationError

from argo_harbor.engines import events
from argo_harbor.engines.launch import Ended, Launcher, TryArguments
from argo_harbor.model.plan import PlanHead, TaskPlan
from argo_harbor.model.record import TrialRecord
from argo_harbor.model.states import VerifierMode
from argo_harbor.store import layout
from argo_harbor.store.base import KeyNotFound, Store

AGAIN = 75
"""The runner's exit status for: a further try shall run."""


@dataclass(frozen=True, slots=True)
class AttemptRunner:
    """What all attempts of a run share."""

    run: str
    plan: str
    head: PlanHead
    store: Store
    launcher: Launcher
    progress: events.Progress
    stopping: Callable[[], bool]
    deadline: Callable[[], float]
    """Unix time at which the run's budget is spent; the first call starts the clock."""

    async def run_attempt(self, part: TaskPlan, attempt: int) -> TrialRecord | None:
        """The record of the last try, None when it left none."""
        record: TrialRecord | None = None
        lost = 0
        try_ = 0
        while not self.stopping():
            trial = TryArguments(self.run, self.plan, part.index, attempt, try_, secrets.token_hex(16))
            self.progress(events.TrialStarted(part.index, part.name, attempt, try_))
            ended = await self._try(part, trial)
            record = self._record(trial)
            lost += record is None
            # The runner counts the tries that left a record; one that died without may not repeat forever.
            again = ended.status == AGAIN if record is not None else lost <= self.head.infra_retries
            again = again and not self.stopping()
            note = "" if record is not None else self._note(ended)
            self.progress(
                events.TrialFinished(part.index, part.name, attempt, try_, record, retrying=again, note=note)
            )
            if not again:
                break
            try_ += 1
        return record

    async def _try(self, part: TaskPlan, trial: TryArguments) -> Ended:
        separate = part.verifier_mode is VerifierMode.SEPARATE and not part.steps
        ended = await self._launch("agent" if separate else "trial", part, trial)
        graded = 0
        while separate and self._awaits_grading(trial) and not self.stopping():
            ended = await self._launch("verify", part, replace(trial, try_=graded))
            if ended.status != AGAIN and self._record(trial) is None:
                break
            graded += 1
        return ended

    async def _launch(self, mode: str, part: TaskPlan, trial: TryArguments) -> Ended:
        def announce(phase: str) -> None:
            self.progress(events.TrialPhase(part.index, part.name, trial.attempt, trial.try_, phase))

        return await self.launcher.run(mode, trial, deadline=self.deadline(), on_phase=announce)

    def _awaits_grading(self, trial: TryArguments) -> bool:
        return self._record(trial) is None and self.store.exists(self._folder(trial) + layout.AGENT_HALF)

    def _record(self, trial: TryArguments) -> TrialRecord | None:
        try:
            return TrialRecord.from_json(self.store.get(self._folder(trial) + layout.TRIAL))
        except (KeyNotFound, ValidationError):
            return None

    @staticmethod
    def _folder(trial: TryArguments) -> str:
        return layout.try_folder(trial.run, trial.index, trial.attempt, trial.try_, trial.uid)

    def _note(self, ended: Ended) -> str:
        if self.stopping():
            return "stopped"
        return ended.complaint.rpartition("\n")[2] or f"the runner ended with status {ended.status}"
