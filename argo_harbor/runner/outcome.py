"""From what happened in a trial to its outcome: pure, and the only place that decides.

Harbor records exceptions by name, our own clocks and checks say what they saw; `judge` turns both into one
verdict, and `is_final` says whether the attempt gets a further try.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from argo_harbor.model.record import FINAL_ERRORS, RejectedReward, StepResult, TrialError
from argo_harbor.model.states import Outcome
from argo_harbor.runner.rewards import Reading, choose

MESSAGE_LIMIT = 8000
"""Characters of an error message; below the record's own limit."""

Phase = Literal["sandbox", "setup", "agent", "collect", "verifier"]
Stop = Literal["", "cancelled", "expired", "deadline", "died"]

AUTH = frozenset({"AgentAuthenticationError", "AuthenticationError", "PermissionDeniedError"})
UNKNOWN_MODEL = frozenset({"ModelNotFoundError", "ApiProviderResourceNotFoundError", "NotFoundError"})
RESTARTED = "SandboxRestarted"
INFRASTRUCTURE = frozenset(
    {
        "SandboxStartFailed",
        "SandboxDied",
        RESTARTED,
        "TransferFailed",
        "EnvironmentStartTimeoutError",
        "TransferTimeout",
    }
)
AGENT_TIMEOUT = "AgentTimeoutError"
AGENT_EXIT = "NonZeroAgentExitCodeError"
UNHEALTHY = "HealthcheckError"
VERIFIER_TIMEOUT = "VerifierTimeoutError"
REWARD_ERRORS = frozenset(
    {"RewardFileNotFoundError", "RewardFileEmptyError", "VerifierOutputParseError", "RewardTampered"}
)
NOT_RETRYABLE = frozenset(
    {
        "agent_timeout",
        "verifier_timeout",
        "agent_auth_failed",
        "model_unknown",
        "task_unusable",
        "reward_missing",
        "reward_invalid",
        "reward_key_missing",
        "reward_tampered",
        "cancelled",
        "expired",
    }
)


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception as Harbor recorded it."""

    type: str
    message: str
    phase: Phase
    """Where the trial was."""
    cause: str = ""
    """Name of the sandbox's own error behind it, where there was one."""


@dataclass(frozen=True, slots=True)
class Graded:
    """One grading: of the whole trial, or of one step."""

    step: str = ""
    reading: Reading | None = None
    """None when the verifier did not get as far as reward files."""
    failure: Failure | None = None
    """The step's own, multi-step only."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a verdict rests on."""

    phase: Phase = "sandbox"
    """The last phase that began."""
    failure: Failure | None = None
    """The trial's own."""
    gradings: tuple[Graded, ...] = ()
    multi_step: bool = False
    final_step_only: bool = False
    """True when the last step's reward is the trial's; otherwise it is the mean of the steps'."""
    tampered: str = ""
    """What came back after it was removed; empty when nothing did."""
    unusable: str = ""
    """Why the runner could not load the task at all."""
    policy_mismatch: str = ""
    stop: Stop = ""
    """What ended the trial from outside: `deadline` is its own outer clock, `died` a lost child process."""
    stop_detail: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    outcome: Outcome
    reward_key: str
    error: TrialError | None = None
    rewards: dict[str, float] | None = None
    rejected: tuple[RejectedReward, ...] = ()
    steps: tuple[StepResult, ...] = field(default=())


def judge(facts: Facts, reward_key: str) -> Verdict:
    """The verdict on one try."""
    steps = tuple(_step(graded) for graded in facts.gradings) if facts.multi_step else ()
    stopped = _stopped(facts)
    if stopped is not None:
        outcome, error = stopped
        return Verdict(outcome, reward_key, error, steps=steps)
    if facts.tampered:
        error = _error("reward_tampered", message=facts.tampered)
        return Verdict(Outcome.UNSCORED, reward_key, error, steps=steps)
    blocking = _blocking(facts)
    if blocking is not None:
        outcome, error = blocking
        return Verdict(outcome, reward_key, error, steps=steps)
    reading = _joined(facts)
    if reading.rewards is None:
        return Verdict(
            Outcome.UNSCORED,
            reward_key,
            _error(reading.problem or "reward_missing", message=_with_agent(facts, reading.detail)),
            rejected=reading.rejected,
            steps=steps,
        )
    chosen = choose(reading, reward_key)
    if chosen.problem:
        message = f"scored by {reward_key!r}, but the rewards are {', '.join(sorted(reading.rewards))}"
        return Verdict(
            Outcome.UNSCORED,
            reward_key,
            _error(chosen.problem, message=message),
            reading.rewards,
            reading.rejected,
            steps,
        )
    kept = _agent_failure(facts)
    return Verdict(Outcome.SCORED, chosen.key, kept, reading.rewards, reading.rejected, steps)


def is_final(verdict: Verdict, *, earlier: Sequence[Outcome], max_retries: int, infra_retries: int) -> bool:
    """Whether this try decides its attempt, given how the earlier tries of the attempt ended."""
    match verdict.outcome:
        case Outcome.SCORED | Outcome.UNSCORED:
            return True
        case Outcome.CANCELLED | Outcome.EXPIRED:
            return False
        case Outcome.INFRASTRUCTURE:
            return sum(outcome is Outcome.INFRASTRUCTURE for outcome in earlier) >= infra_retries
        case Outcome.ERRORED:
            spent = sum(outcome is Outcome.ERRORED for outcome in earlier) >= max_retries
            return spent or verdict.error is None or not verdict.error.retryable


def _stopped(facts: Facts) -> tuple[Outcome, TrialError] | None:
    match facts.stop:
        case "cancelled":
            return Outcome.CANCELLED, _error("cancelled", message=facts.stop_detail)
        case "expired":
            return Outcome.EXPIRED, _error("expired", message=facts.stop_detail)
        case "died":
            return Outcome.INFRASTRUCTURE, _error("internal", message=facts.stop_detail)
        case "deadline":
            return _by_phase(facts.phase, Failure("OuterDeadline", facts.stop_detail, facts.phase))
        case _:
            return None


def _by_phase(phase: Phase, failure: Failure) -> tuple[Outcome, TrialError]:
    """A clock of ours ended a phase that Harbor's own did not."""
    match phase:
        case "setup":
            return Outcome.ERRORED, _error("agent_setup_failed", failure)
        case "agent":
            return Outcome.ERRORED, _error("agent_timeout", failure)
        case "verifier":
            return Outcome.ERRORED, _error("verifier_timeout", failure)
        case _:
            return Outcome.INFRASTRUCTURE, _error("sandbox_failed", failure)


def _blocking(facts: Facts) -> tuple[Outcome, TrialError] | None:
    """What keeps a trial from being scored whatever the reward files say."""
    if facts.unusable:
        return Outcome.ERRORED, _error("task_unusable", message=facts.unusable)
    if facts.policy_mismatch:
        return Outcome.INFRASTRUCTURE, _error("policy_mismatch", message=facts.policy_mismatch)
    failures = [failure for failure in (facts.failure, *(g.failure for g in facts.gradings)) if failure]
    for failure in failures:
        if failure.type == "ImageBuildFailed":
            return Outcome.INFRASTRUCTURE, _error("image_build_failed", failure)
        if RESTARTED in (failure.type, failure.cause):
            return Outcome.INFRASTRUCTURE, _error("sandbox_restarted", failure)
        if failure.type in INFRASTRUCTURE or failure.cause in INFRASTRUCTURE:
            return Outcome.INFRASTRUCTURE, _error("sandbox_failed", failure)
    for failure in failures:
        if failure.type == VERIFIER_TIMEOUT:
            return Outcome.ERRORED, _error("verifier_timeout", failure)
    graded = bool(facts.gradings) and all(grading.reading is not None for grading in facts.gradings)
    for failure in failures:
        if failure.type in REWARD_ERRORS:
            continue
        if failure.phase == "verifier":
            return Outcome.ERRORED, _error("verifier_crashed", failure)
        if failure.phase == "sandbox" and failure.type != UNHEALTHY:
            return Outcome.INFRASTRUCTURE, _error("sandbox_failed", failure)
        if not graded:
            return Outcome.ERRORED, _error(_agent_code(failure), failure)
    if not facts.gradings:
        return Outcome.INFRASTRUCTURE, _error("internal", message="the trial ended before it was graded")
    return None


def _agent_code(failure: Failure) -> str:
    if failure.type in AUTH:
        return "agent_auth_failed"
    if failure.type in UNKNOWN_MODEL:
        return "model_unknown"
    if failure.type == UNHEALTHY:
        return "healthcheck_failed"
    if failure.phase == "setup":
        return "agent_setup_failed"
    return {AGENT_TIMEOUT: "agent_timeout", AGENT_EXIT: "agent_exit_nonzero"}.get(
        failure.type, "agent_crashed"
    )


def _agent_failure(facts: Facts) -> TrialError | None:
    """An agent's failure that a usable reward does not undo."""
    failures = (facts.failure, *(grading.failure for grading in facts.gradings))
    for failure in failures:
        if failure is not None and failure.phase != "verifier" and failure.type not in REWARD_ERRORS:
            return _error(_agent_code(failure), failure)
    return None


def _with_agent(facts: Facts, detail: str) -> str:
    failure = _agent_failure(facts)
    return detail if failure is None else f"{detail}; before that, {FINAL_ERRORS[failure.code]}"


def _joined(facts: Facts) -> Reading:
    """One reading of all gradings.

    A step without a usable reward leaves the whole trial unscored: a mean of the others would be better than
    what was achieved. Steps that were not reached do not count, as in Harbor.
    """
    unread = Reading(None, "reward_missing", "the verifier left nothing to read")
    readings = [grading.reading or unread for grading in facts.gradings]
    if not facts.multi_step or facts.final_step_only:
        return readings[-1]
    rejected = tuple(entry for reading in readings for entry in reading.rejected)
    for grading, reading in zip(facts.gradings, readings, strict=True):
        if reading.rewards is None:
            return reading._replace(detail=f"step {grading.step}: {reading.detail}", rejected=rejected)
    keys = sorted({key for reading in readings for key in reading.rewards or {}})
    means = {key: sum((r.rewards or {}).get(key, 0.0) for r in readings) / len(readings) for key in keys}
    return Reading(means, rejected=rejected)


def _step(graded: Graded) -> StepResult:
    reading = graded.reading
    if graded.failure is not None and graded.failure.type not in REWARD_ERRORS:
        failure = graded.failure
        code = "verifier_crashed" if failure.phase == "verifier" else _agent_code(failure)
        if failure.type == VERIFIER_TIMEOUT:
            code = "verifier_timeout"
        error: TrialError | None = _error(code, failure)
    elif reading is not None and reading.problem:
        error = _error(reading.problem, message=reading.detail)
    else:
        error = None
    return StepResult(name=graded.step, rewards=reading.rewards if reading else None, error=error)


def _error(code: str, failure: Failure | None = None, message: str = "") -> TrialError:
    text = message or (failure.message if failure else "") or FINAL_ERRORS[code]
    return TrialError(
        code=code,
        type=failure.type if failure else "",
        message=text[:MESSAGE_LIMIT],
        retryable=code not in NOT_RETRYABLE,
    )
