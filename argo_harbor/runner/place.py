"""Where a try runs: on this machine for an engine that started the runner, or as the main container of a pod.

The runner is the same in both; what differs stands here and in `pod_place`.
"""

from __future__ import annotations

import platform
from pathlib import Path
from typing import NamedTuple, Protocol

from argo_harbor.model.plan import PlanHead, TaskPlan
from argo_harbor.model.record import TrialRecord
from argo_harbor.model.runner import PodSandboxSettings, RunnerSettings, SandboxSettings
from argo_harbor.planning.local import local_network
from argo_harbor.runner.announce import announce_to_engine
from argo_harbor.runner.exits import EXIT_AGAIN
from argo_harbor.runner.grants import GrantedValues
from argo_harbor.runner.outcome import Stop
from argo_harbor.runner.supervise import GRACE_SECONDS
from argo_harbor.store.base import Store

CLOSING_SECONDS = 60.0
"""What the outer clock leaves beyond the planned phases: interpreters start, evidence is uploaded."""


class Admission(NamedTuple):
    """Whether a try may run its trial, and how long."""

    stop: Stop = ""
    detail: str = ""
    deadline: float | None = None
    """Unix time on this machine's clock at which the run's budget is spent."""


class Granted(NamedTuple):
    """Granted variables with their values, by the phase that gets them, and the model's credential."""

    target: GrantedValues
    verifier: GrantedValues
    model_key: str = ""


class Place(Protocol):
    """What the runner must know of its surroundings."""

    scratch: Path
    """Where scratch folders of tries are made."""
    node: str
    workflow_uid: str
    grace: float
    """Seconds that a cancelled trial gets to collect what there is."""
    began_at: str
    """When the runner's process began; empty where that is of no interest."""

    def claim(self, store: Store, run: str) -> None:
        """Make sure that the run's name is its own. Raises PlatformError `run_id_reused`."""

    def admit(self, store: Store, run: str, head: PlanHead, started: str) -> Admission:
        """Ask whether the run still wants this try, whose `started.json` has the key `started`."""

    def sandbox(self, head: PlanHead, part: TaskPlan) -> SandboxSettings | PodSandboxSettings:
        """How the sandboxes of a task are made."""

    def grants(self, head: PlanHead) -> Granted: ...

    def outer_seconds(self, planned: float) -> float:
        """What is left for the trial of its planned outer deadline."""

    def announce(self, phase: str) -> None:
        """Tell where the trial is."""

    def leave(self, record: TrialRecord, work: Path, secrets: tuple[str, ...]) -> None:
        """Show people what the try left, after its record is in the store."""

    def stopped_status(self, stop: Stop, *, before: bool) -> int:
        """Exit status of a try that was cancelled or expired, maybe before its trial began."""


class LocalPlace:
    """A place that an engine on this machine describes in its settings."""

    grace = GRACE_SECONDS
    workflow_uid = ""
    began_at = ""

    def __init__(self, settings: RunnerSettings, granted: Granted, deadline: float | None) -> None:
        self._settings = settings
        self._granted = granted
        self._deadline = deadline
        self.scratch = Path(settings.sandbox.run_scratch)
        self.node = platform.node()

    def claim(self, store: Store, run: str) -> None:
        """The engine has made the run's name."""

    def admit(self, store: Store, run: str, head: PlanHead, started: str) -> Admission:
        return Admission(deadline=self._deadline)

    def sandbox(self, head: PlanHead, part: TaskPlan) -> SandboxSettings:
        """The host's network only for what is public in every phase."""
        rule = local_network(part)
        settings = self._settings.sandbox
        public = rule is not None and rule.mode == "public"
        return settings if public else settings.model_copy(update={"network": "none"})

    def grants(self, head: PlanHead) -> Granted:
        return self._granted

    def outer_seconds(self, planned: float) -> float:
        return planned + CLOSING_SECONDS

    def announce(self, phase: str) -> None:
        announce_to_engine(phase)

    def leave(self, record: TrialRecord, work: Path, secrets: tuple[str, ...]) -> None:
        """Everything is in the store."""

    def stopped_status(self, stop: Stop, *, before: bool) -> int:
        return EXIT_AGAIN
