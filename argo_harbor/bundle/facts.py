"""The few facts of each attempt that summary, status and report are made of.

A trial record may hold kilobytes; of thousands of them only these stay in memory while a run is merged.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from argo_harbor.bundle.collect import Collected
from argo_harbor.bundle.evidence import Link, links_of
from argo_harbor.bundle.trust import seconds_between
from argo_harbor.model.bundle import MissingAttempt
from argo_harbor.model.plan import TaskEntry
from argo_harbor.model.record import TrialRecord
from argo_harbor.model.states import Outcome, TrialStatus

MESSAGE_CHARS = 400
"""Of an error message; the whole stands in `trials.jsonl`."""


@dataclass(frozen=True, slots=True)
class TrialFacts:
    """A decided attempt."""

    id: str
    attempt: int
    try_: int
    tries: int
    final: bool
    outcome: Outcome
    status: TrialStatus
    error: str
    """Code; empty without an error."""
    message: str
    reward: float | None
    """Only of a scored trial."""
    reward_key: str
    rewards: dict[str, float]
    seconds: float
    prompt_tokens: int | None
    completion_tokens: int | None
    cache_read_tokens: int | None
    cost_usd: float | None
    started_at: str
    finished_at: str
    engine: str
    base: str
    network: str
    agent_version: str
    links: tuple[Link, ...]

    @property
    def scored(self) -> bool:
        return self.reward is not None


@dataclass(slots=True)
class TaskFacts:
    """A planned task with its attempts, decided and missing."""

    entry: TaskEntry
    digest: str = ""
    """Content digest, from the records."""
    trials: list[TrialFacts] = field(default_factory=list)
    missing: list[MissingAttempt] = field(default_factory=list)
    started: bool = False
    """Whether any try of it has started."""
    silent: list[int] = field(default_factory=list)
    """Attempts whose latest try has left no record: running, or lost."""

    @property
    def name(self) -> str:
        return self.entry.name

    def add(self, collected: Collected) -> None:
        self.started = self.started or collected.tries > 0
        if collected.silent:
            self.silent.append(collected.attempt)
        if collected.record is not None:
            self.digest = self.digest or collected.record.task_digest
            self.trials.append(facts_of(collected.record, collected.tries))
        if collected.missing is not None:
            self.missing.append(collected.missing)


def trial_id(task: str, attempt: int) -> str:
    """`<task>__<attempt>`: unique, since attempts are numbers and task names are unique."""
    return f"{task}__{attempt}"


def status_of(record: TrialRecord) -> TrialStatus:
    """How the bundle calls it: completed only when it is scored without any error."""
    if record.outcome is Outcome.INFRASTRUCTURE:
        return TrialStatus.FAILED
    if record.outcome is Outcome.SCORED and record.error is None:
        return TrialStatus.COMPLETED
    return TrialStatus.PARTIAL


def reward_of(record: TrialRecord) -> float | None:
    """The reward that scores it; None unless it is scored, whatever numbers it carries."""
    if record.outcome is not Outcome.SCORED:
        return None
    return (record.rewards or {}).get(record.reward_key)


def facts_of(record: TrialRecord, tries: int) -> TrialFacts:
    error = record.error
    return TrialFacts(
        id=trial_id(record.task_name, record.ref.attempt),
        attempt=record.ref.attempt,
        try_=record.ref.try_,
        tries=tries,
        final=record.final,
        outcome=record.outcome,
        status=status_of(record),
        error=error.code if error else "",
        message=error.message[:MESSAGE_CHARS] if error else "",
        reward=reward_of(record),
        reward_key=record.reward_key,
        rewards=record.rewards or {},
        seconds=seconds_between(record.started_at, record.finished_at),
        prompt_tokens=record.usage.prompt_tokens,
        completion_tokens=record.usage.completion_tokens,
        cache_read_tokens=record.usage.cache_read_tokens,
        cost_usd=record.usage.cost_usd,
        started_at=record.started_at,
        finished_at=record.finished_at,
        engine=record.sandbox.engine,
        base=record.sandbox.base,
        network=record.sandbox.network,
        agent_version=record.agent_version,
        links=links_of(record),
    )
