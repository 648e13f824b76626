"""The states of runs, tasks and trials: the only home of these names."""

from __future__ import annotations

from enum import StrEnum


class RunPhase(StrEnum):
    """Where a run is. The last four are terminal."""

    ACCEPTED = "accepted"
    RUNNING = "running"
    COMPLETED = "completed"
    """At least one task succeeded and neither a cancel nor the deadline came first."""
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    @property
    def terminal(self) -> bool:
        return self not in (RunPhase.ACCEPTED, RunPhase.RUNNING)


class ResultState(StrEnum):
    """Where the merged result is; final once the run's phase is terminal."""

    PENDING = "pending"
    READY = "ready"
    FAILED = "failed"
    """Merging did not finish."""
    NONE = "none"
    """No task succeeded, so there is nothing to merge."""


class TaskPhase(StrEnum):
    """Where one task of a run is."""

    IMAGE_BUILDING = "image_building"
    IMAGE_READY = "image_ready"
    REGISTERED = "registered"
    """At least one trial has started and none of the planned ones is missing for good."""
    SUCCEEDED = "succeeded"
    """At least one attempt has a final record, whatever its reward."""
    FAILED = "failed"
    """No attempt has a final record."""
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    @property
    def terminal(self) -> bool:
        return self in (TaskPhase.SUCCEEDED, TaskPhase.FAILED, TaskPhase.CANCELLED, TaskPhase.EXPIRED)


class Outcome(StrEnum):
    """How a trial ended, as its record says."""

    SCORED = "scored"
    UNSCORED = "unscored"
    """The verifier ran and left no usable reward, or the reward was tampered with."""
    ERRORED = "errored"
    INFRASTRUCTURE = "infrastructure"
    """The platform failed, not the agent; never counts as a score."""
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class TrialStatus(StrEnum):
    """A trial's status in the bundle (`trials.jsonl`)."""

    COMPLETED = "completed"
    PARTIAL = "partial"
    FAILED = "failed"


class VerifierMode(StrEnum):
    """Whether grading happens in the agent's sandbox or in one of its own."""

    SHARED = "shared"
    SEPARATE = "separate"
