"""The one trial of this process: what Harbor's callbacks share, since Harbor makes their objects itself.

Harbor builds the environment and the verifier from import paths; both find the session of the process here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from argo_harbor.model.plan import NetworkRules, PhaseRules, PhaseTimeouts, TaskPlan
from argo_harbor.model.record import AppliedPolicy, ArtifactLink, PhaseTime, RefusedHost
from argo_harbor.runner.clock import now
from argo_harbor.runner.job import GRADED
from argo_harbor.runner.outcome import Failure, Graded, Phase
from argo_harbor.runner.policy import NOTHING, PhasePolicy, PolicyMismatch
from argo_harbor.sandbox.base import Sandbox

MAX_LINKS = 1000
"""Links listed in a record; a sandbox may make any number."""


class SandboxFactory(Protocol):
    """Makes the sandboxes of a trial."""

    @property
    def ignored_from(self) -> tuple[str, ...]:
        """FROM images that something else stood in for, in the order in which they were needed."""
        ...

    @property
    def image_digest(self) -> str:
        """`sha256:…` of the agent's image, empty where none was used."""
        ...

    @property
    def refused(self) -> dict[str, tuple[RefusedHost, ...]]:
        """Hosts that were refused, by phase."""
        ...

    async def make(self, context: Path | None, name: str, image: str) -> Sandbox:
        """A sandbox of the image built from the folder `context`, or of `image` when that is None.

        Raises: SandboxError.
        """
        ...


@dataclass
class Session:
    """State of the running trial. Written by environment, verifier and hooks, read for the report."""

    part: TaskPlan
    task_dir: Path
    sandboxes: SandboxFactory
    policy: PhasePolicy
    announce: Callable[[str], None]
    phase: Phase = "sandbox"
    step: str = ""
    phases: dict[str, PhaseTime] = field(default_factory=dict)
    policies: dict[str, AppliedPolicy] = field(default_factory=dict)
    gradings: dict[str, Graded] = field(default_factory=dict)
    """By step; the whole trial's under the empty name."""
    tampered: str = ""
    policy_mismatch: str = ""
    agent_ran: bool = False
    links: list[ArtifactLink] = field(default_factory=list)
    transfer_spent: float = 0.0
    """Seconds of uploads and downloads so far."""
    graded_at: str = ""
    """When the last grading had been read."""

    def enter(self, phase: Phase) -> None:
        """Note that a phase begins; the one before it ends."""
        self.leave()
        self.phase = phase
        moment = self.phases.get(phase)
        self.phases[phase] = PhaseTime(started_at=moment.started_at if moment else now())
        self.announce(phase)

    def leave(self) -> None:
        """Note that the present phase ends."""
        current = self.phases.get(self.phase)
        if current is not None and not current.finished_at:
            self.phases[self.phase] = current.model_copy(update={"finished_at": now()})

    def graded(self) -> None:
        """Note that a grading has been read: what follows are our own checks."""
        self.graded_at = now()
        self.announce(GRADED)

    async def apply(self, phase: str) -> None:
        """Bring a phase's rules into force. Raises PolicyMismatch, which keeps the phase from starting."""
        try:
            applied = await self.policy.apply(phase, self._planned(phase))
        except PolicyMismatch as error:
            self.policy_mismatch = str(error)
            raise
        if applied is not None:
            self.policies[phase] = applied

    def _planned(self, phase: str) -> PhaseRules:
        rules = self.rules()
        match phase:
            case "setup":
                return rules.setup
            case "agent":
                return rules.agent
            case "verifier":
                return rules.verifier
            case _:
                return NOTHING

    def rules(self) -> NetworkRules:
        for step in self.part.steps:
            if step.name == self.step:
                return step.rules
        return self.part.rules

    def timeouts(self, step: str | None = None) -> PhaseTimeouts:
        """Of a step, or of the whole trial."""
        for planned in self.part.steps:
            if planned.name == (step if step is not None else self.step):
                return planned.timeouts
        return self.part.timeouts

    def add_links(self, links: list[ArtifactLink]) -> None:
        self.links.extend(links[: MAX_LINKS - len(self.links)])

    def fail(self, step: str, failure: Failure) -> None:
        known = self.gradings.get(step, Graded(step))
        self.gradings[step] = Graded(step, known.reading, failure)


_current: list[Session] = []


def bind(session: Session) -> None:
    """Make `session` the one of this process."""
    _current[:] = [session]


def current() -> Session:
    """Raises RuntimeError before `bind`."""
    if not _current:
        raise RuntimeError("no trial runs in this process")
    return _current[0]


class TransferTimeout(Exception):
    """Uploads and downloads together took longer than the plan allows."""
