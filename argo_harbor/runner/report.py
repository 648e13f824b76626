"""Turns Harbor's result and the session's notes into the child's report."""

from __future__ import annotations

from pathlib import Path

from harbor.agents.installed.base import NonZeroAgentExitCodeError
from harbor.models.task.config import MultiStepRewardStrategy
from harbor.models.trial.result import ExceptionInfo, TrialResult
from harbor.trial.trial import Trial

from argo_harbor.model.record import Usage
from argo_harbor.runner.job import Report, ReportedFailure, ReportedGrading
from argo_harbor.runner.outcome import AGENT_EXIT, AGENT_TIMEOUT, Failure, Graded, Phase
from argo_harbor.runner.session import Session

ORACLE = "oracle"
EXIT_CODE_FILE = "exit-code.txt"
"""Where Harbor's oracle leaves the status of a solution that failed; it raises nothing."""


def unusable(error: Exception, trial_dir: str) -> Report:
    """Harbor could not load the task."""
    return Report(created=False, unusable=f"{type(error).__name__}: {error}"[:4000], trial_dir=trial_dir)


def report_of(trial: Trial, session: Session, *, trial_dir: str, cancelled: bool) -> Report:
    """Everything that the runner needs of an ended trial."""
    result = trial.result
    strategy = trial.task.config.multi_step_reward_strategy
    return Report(
        created=True,
        cancelled=cancelled,
        phase=session.phase,
        failure=_failure(trial, session) if not cancelled else None,
        gradings=_gradings(trial, session),
        multi_step=trial.task.has_steps,
        final_step_only=strategy is MultiStepRewardStrategy.FINAL,
        tampered=session.tampered,
        policy_mismatch=session.policy_mismatch,
        gradable=session.agent_ran and not cancelled and _went_on(result.exception_info),
        agent_version=_version(result),
        phases=session.phases,
        policies=session.policies,
        usage=_usage(result),
        links=tuple(session.links),
        refused=session.sandboxes.refused,
        ignored_from=session.sandboxes.ignored_from,
        image_digest=session.sandboxes.image_digest,
        graded_at=session.graded_at,
        trial_dir=trial_dir,
    )


def _failure(trial: Trial, session: Session) -> ReportedFailure | None:
    info = trial.result.exception_info
    if info is None:
        failed = _failed_solution(trial, trial.paths.agent_dir)
        return _reported(failed) if failed else None
    noted = session.gradings.get("")
    if noted is not None and noted.failure is not None and noted.failure.type == info.exception_type:
        return _reported(noted.failure)
    # Harbor keeps the first exception: beside a grading that took place, it is the agent's.
    agents = noted is not None or _went_on(info)
    phase: Phase = "agent" if agents else session.phase
    return ReportedFailure(type=info.exception_type, message=info.exception_message[:4000], phase=phase)


def _went_on(info: ExceptionInfo | None) -> bool:
    """Whether a single-step trial grades in spite of this exception."""
    if info is None:
        return True
    return info.exception_type == AGENT_TIMEOUT or info.exception_type in _names(NonZeroAgentExitCodeError)


def _names(kind: type[BaseException]) -> set[str]:
    return {kind.__name__}.union(*(_names(derived) for derived in kind.__subclasses__()))


def _failed_solution(trial: Trial, agent_dir: Path) -> Failure | None:
    """The oracle's failure that Harbor only wrote down; other agents raise theirs."""
    left = agent_dir / EXIT_CODE_FILE
    if trial.config.agent.name != ORACLE or not left.is_file():
        return None
    with left.open("rb") as source:
        status = source.read(20).decode(errors="replace").strip()
    return Failure(AGENT_EXIT, f"the solution ended with status {status}", "agent")


def _gradings(trial: Trial, session: Session) -> tuple[ReportedGrading, ...]:
    result = trial.result
    if result.step_results is None:
        return tuple(_grading(graded) for graded in session.gradings.values())
    found = []
    for step in result.step_results:
        graded = session.gradings.get(step.step_name, Graded(step.step_name))
        info = step.exception_info
        failure = graded.failure
        if info is not None and failure is None:
            failure = Failure(info.exception_type, info.exception_message[:4000], "agent")
        if failure is None:
            failure = _failed_solution(trial, trial.paths.step_agent_dir(step.step_name))
        found.append(_grading(Graded(step.step_name, graded.reading, failure)))
    return tuple(found)


def _grading(graded: Graded) -> ReportedGrading:
    reading = graded.reading
    failure = _reported(graded.failure) if graded.failure else None
    if reading is None:
        return ReportedGrading(step=graded.step, failure=failure)
    return ReportedGrading(
        step=graded.step,
        read=True,
        rewards=reading.rewards,
        problem=reading.problem,
        detail=reading.detail,
        rejected=reading.rejected,
        failure=failure,
    )


def _reported(failure: Failure) -> ReportedFailure:
    return ReportedFailure(
        type=failure.type, message=failure.message[:4000], phase=failure.phase, cause=failure.cause
    )


def _version(result: TrialResult) -> str:
    version = result.agent_info.version
    return "" if version in (None, "unknown") else str(version)


def _usage(result: TrialResult) -> Usage:
    prompt, cached, completion, cost = result.compute_token_cost_totals()
    return Usage(prompt_tokens=prompt, completion_tokens=completion, cache_read_tokens=cached, cost_usd=cost)
