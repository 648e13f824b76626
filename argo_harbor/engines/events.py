"""What an engine reports while it submits and runs: it prints nothing itself, the command line does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from argo_harbor.model.record import TrialRecord
from argo_harbor.sources.publish import PublishedTaskset


@dataclass(frozen=True, slots=True)
class Published:
    """Everything that the run needs is in the store."""

    taskset: PublishedTaskset


@dataclass(frozen=True, slots=True)
class AlreadyRunning:
    """Another active run of the same user works on the same taskset; that blocks nothing."""

    run: str


@dataclass(frozen=True, slots=True)
class RunFound:
    """The idempotency key belongs to a run of just this request: nothing new was started."""

    run: str


@dataclass(frozen=True, slots=True)
class RunAccepted:
    """The run is in the store and its first trial is about to start."""

    run: str
    plan_digest: str
    tasks: int
    trials: int
    cap: int
    """Trials at once."""
    base: Literal["image", "preview"]
    base_reason: str
    """Why that base; empty when it was asked for."""
    store: str
    network: str
    """`none`, `none (narrowed)` or `unfenced`; `fenced` in a cluster."""


@dataclass(frozen=True, slots=True)
class BuildStarted:
    image_key: str
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BuildFinished:
    image_key: str
    tasks: tuple[str, ...]
    seconds: float
    error: str
    """Empty when the base is ready."""


@dataclass(frozen=True, slots=True)
class TrialStarted:
    index: int
    task: str
    attempt: int
    try_: int


@dataclass(frozen=True, slots=True)
class TrialPhase:
    index: int
    task: str
    attempt: int
    try_: int
    phase: str
    """`sandbox`, `setup`, `agent`, `collect` or `verifier`."""


@dataclass(frozen=True, slots=True)
class TrialFinished:
    index: int
    task: str
    attempt: int
    try_: int
    record: TrialRecord | None
    """None when the try left no record, or when its image did not build."""
    retrying: bool
    note: str
    """Why there is no record."""


@dataclass(frozen=True, slots=True)
class GateDecided:
    """The canary tasks are done."""

    passed: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stopping:
    reason: Literal["interrupted", "expired"]
    running: int


@dataclass(frozen=True, slots=True)
class MergeStarted:
    run: str


type Event = (
    Published
    | AlreadyRunning
    | RunFound
    | RunAccepted
    | BuildStarted
    | BuildFinished
    | TrialStarted
    | TrialPhase
    | TrialFinished
    | GateDecided
    | Stopping
    | MergeStarted
)
type Progress = Callable[[Event], None]


def silent(event: Event) -> None:
    """A listener for callers that do not look."""
