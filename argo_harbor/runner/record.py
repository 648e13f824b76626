"""Puts a trial's record together from the plan, the child's report and the verdict. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from argo_harbor.model.plan import PlanHead, TaskPlan
from argo_harbor.model.record import AttemptRef, SandboxFacts, TrialRecord
from argo_harbor.model.runner import PodSandboxSettings, SandboxSettings
from argo_harbor.runner.job import Report, ReportedFailure, ReportedGrading
from argo_harbor.runner.outcome import Facts, Failure, Graded, Stop, Verdict
from argo_harbor.runner.rewards import Reading


@dataclass(frozen=True, slots=True)
class Setting:
    """What is known of a try before it runs."""

    ref: AttemptRef
    head: PlanHead
    part: TaskPlan
    sandbox: SandboxSettings | PodSandboxSettings
    node: str
    started_at: str
    began_at: str
    """When the runner's own process began."""
    image_digest: str = ""
    """`sha256:…` of the agent's image, where it is known beforehand."""


def facts_of(report: Report | None, stop: Stop, detail: str) -> Facts:
    """What the verdict rests on; a child that left no report leaves only how it was stopped."""
    if report is None:
        return Facts(stop=stop, stop_detail=detail)
    return Facts(
        phase=report.phase,
        failure=_failure(report.failure),
        gradings=tuple(_grading(one) for one in report.gradings),
        multi_step=report.multi_step,
        final_step_only=report.final_step_only,
        tampered=report.tampered,
        unusable=report.unusable,
        policy_mismatch=report.policy_mismatch,
        stop=stop,
        stop_detail=detail,
    )


def record_of(
    setting: Setting,
    report: Report | None,
    verdict: Verdict,
    *,
    final: bool,
    finished_at: str,
    files: tuple[str, ...],
    half: TrialRecord | None = None,
) -> TrialRecord:
    """`trial.json` of one try; `half` is the record of the agent's half, if another process ran that."""
    head, part = setting.head, setting.part
    seen = report or Report(created=False, trial_dir="")
    before = half.overhead_seconds if half is not None else _before_agent(setting, seen)
    return TrialRecord(
        ref=setting.ref,
        task_name=part.name,
        task_digest=part.digest,
        final=final,
        outcome=verdict.outcome,
        error=verdict.error,
        rewards=verdict.rewards,
        reward_key=verdict.reward_key,
        rejected=verdict.rejected,
        steps=verdict.steps,
        agent_name=head.agent.name,
        agent_version=seen.agent_version,
        model=head.agent.model.ref if head.agent.model else "",
        started_at=setting.started_at,
        finished_at=finished_at,
        phases=seen.phases,
        overhead_seconds=before | _after_verifier(seen, finished_at),
        usage=seen.usage,
        policies=seen.policies,
        refused=seen.refused,
        opened_for_grading=part.rules.opened_for_grading,
        sandbox=_sandbox(setting, seen),
        links=seen.links,
        files=files,
        node=setting.node,
    )


def _sandbox(setting: Setting, report: Report) -> SandboxFacts:
    settings, part = setting.sandbox, setting.part
    image = part.images.agent.reference
    if isinstance(settings, PodSandboxSettings):
        return SandboxFacts(
            engine="argo",
            base="image",
            network="fenced",
            image=image,
            image_digest=setting.image_digest,
        )
    narrowed = settings.network == "none" and part.rules.narrowed
    return SandboxFacts(
        engine="local",
        base=settings.base,
        network="none (narrowed)" if narrowed else settings.network,
        image=image,
        image_digest=report.image_digest,
        ignored_from=report.ignored_from,
        limits_enforced=False,
    )


def _before_agent(setting: Setting, report: Report) -> dict[str, float]:
    """Seconds of our own from the process's start to the agent's, without the agent's installation."""
    setup, agent = report.phases.get("setup"), report.phases.get("agent")
    if agent is None:
        return {}
    installing = _seconds(setup.started_at, agent.started_at) if setup is not None else 0.0
    return {"before_agent": round(max(_seconds(setting.began_at, agent.started_at) - installing, 0.0), 6)}


def _after_verifier(report: Report, finished_at: str) -> dict[str, float]:
    """Seconds of our own from the last grading to the record."""
    return {"after_verifier": _seconds(report.graded_at, finished_at)} if report.graded_at else {}


def _seconds(start: str, end: str) -> float:
    span = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    return round(max(span.total_seconds(), 0.0), 6)


def _failure(reported: ReportedFailure | None) -> Failure | None:
    if reported is None:
        return None
    return Failure(reported.type, reported.message, reported.phase, reported.cause)


def _grading(reported: ReportedGrading) -> Graded:
    reading = None
    if reported.read:
        reading = Reading(reported.rewards, reported.problem, reported.detail, reported.rejected)
    return Graded(reported.step, reading, _failure(reported.failure))
