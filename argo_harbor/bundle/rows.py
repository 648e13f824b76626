"""Rows of `tasks.jsonl`, `trials.jsonl` and `scores.jsonl`, and `metadata.json`, out of records. Pure."""

from __future__ import annotations

import re
from typing import Any

from argo_harbor.bundle.evidence import evidence_of, folder_of
from argo_harbor.bundle.facts import TaskFacts, reward_of, status_of, trial_id
from argo_harbor.bundle.gather import Gathered
from argo_harbor.bundle.trust import seconds_between
from argo_harbor.model.bundle import (
    METRIC,
    Diagnostic,
    ErrorRow,
    Interval,
    Measurements,
    Metadata,
    Metric,
    MetricOutput,
    RunFacts,
    ScoreOutput,
    ScoreRow,
    Signal,
    Target,
    TaskMetadata,
    TaskRow,
    TrialAgent,
    TrialFactsRow,
    TrialMetadata,
    TrialOutput,
    TrialRow,
    View,
)
from argo_harbor.model.plan import PlanHead
from argo_harbor.model.record import TrialRecord
from argo_harbor.model.states import RunPhase, TaskPhase
from argo_harbor.version import __version__

_CREDENTIAL = re.compile(r"key|token|secret|password|credential", re.IGNORECASE)


def trial_row(record: TrialRecord, *, tries: int) -> TrialRow:
    """One decided attempt, with refs relative to the bundle."""
    reward = reward_of(record)
    error = record.error
    prompt, completion = record.usage.prompt_tokens, record.usage.completion_tokens
    total = None if prompt is None and completion is None else (prompt or 0) + (completion or 0)
    return TrialRow(
        id=trial_id(record.task_name, record.ref.attempt),
        task_id=record.task_name,
        status=status_of(record),
        output=TrialOutput(metadata={"harbor_trial_dir": folder_of(record)}),
        evidence=evidence_of(record),
        error=ErrorRow(type=error.code, message=error.message, occurred_at=record.finished_at)
        if error
        else None,
        measurements=Measurements(
            prompt_tokens=prompt,
            completion_tokens=completion,
            total_tokens=total,
            cache_read_tokens=record.usage.cache_read_tokens,
            runtime_sec=seconds_between(record.started_at, record.finished_at),
            cost_usd=record.usage.cost_usd,
        ),
        metadata=TrialMetadata(
            harbor_primary_reward_key=record.reward_key if reward is not None else None,
            reward=reward,
            reward_details=record.rewards or {},
            reward_rejections={rejected.key: rejected.reason for rejected in record.rejected},
            harbor_trial_dir=folder_of(record),
            argo_harbor=_ours(record, tries),
        ),
    )


def _ours(record: TrialRecord, tries: int) -> TrialFactsRow:
    # Not validated again: every part was, with the record, and there are thousands.
    return TrialFactsRow.model_construct(
        index=record.ref.index,
        attempt=record.ref.attempt,
        try_=record.ref.try_,
        tries=tries,
        pod_uid=record.ref.uid,
        node=record.node,
        outcome=record.outcome,
        final=record.final,
        error_type=record.error.type if record.error else "",
        task_digest=record.task_digest,
        started_at=record.started_at,
        finished_at=record.finished_at,
        agent=TrialAgent(name=record.agent_name, version=record.agent_version, model=record.model),
        sandbox=record.sandbox,
        policies=record.policies,
        opened_for_grading=record.opened_for_grading,
        phases=record.phases,
        overhead_seconds=record.overhead_seconds,
        steps=record.steps,
    )


def score_row(record: TrialRecord, *, run_id: str, reward_key: str) -> ScoreRow:
    """The reward of one decided attempt; status `failed` and no outputs unless it is scored."""
    reward = reward_of(record)
    trial = trial_id(record.task_name, record.ref.attempt)
    diagnostics = [
        Diagnostic(severity="warning", message=f"{rejected.key}: {rejected.reason}", source="harbor.verifier")
        for rejected in record.rejected
    ]
    if record.error is not None:
        diagnostics.append(
            Diagnostic(
                severity="error" if reward is None else "warning",
                message=record.error.message or record.error.code,
                source="harbor.trial",
                details={"code": record.error.code, "type": record.error.type},
            )
        )
    return ScoreRow(
        id=f"{run_id}:{record.task_name}:{trial}:{METRIC}",
        run_id=run_id,
        task_id=record.task_name,
        trial_id=trial,
        status="failed" if reward is None else "completed",
        outputs=() if reward is None else (ScoreOutput(name=reward_key, value=reward),),
        diagnostics=tuple(diagnostics),
        metadata={
            "row_index": record.ref.index,
            "trial_metadata": {
                "attempt": record.ref.attempt,
                "harbor_primary_reward_key": record.reward_key if reward is not None else None,
                "outcome": record.outcome.value,
            },
        },
    )


def task_row(task: TaskFacts, *, head: PlanHead, phase: TaskPhase) -> TaskRow:
    output = MetricOutput(
        name=head.reward_key,
        description="Reward that the task's verifier gave.",
        value_schema={"type": "number"},
    )
    return TaskRow(
        id=task.name,
        intent=f"Harbor task {task.name}",
        inputs={"instruction": None},
        reference={},
        metrics=(Metric(type=METRIC, outputs=(output,)),),
        views={"reward": View(reducer="single", signals=(Signal(metric=METRIC, output=head.reward_key),))},
        metadata=TaskMetadata(
            index=task.entry.index,
            phase=phase,
            digest=task.digest,
            planned_attempts=head.n_attempts,
            missing=tuple(task.missing),
        ),
    )


def run_facts(
    gathered: Gathered, *, phase: RunPhase, engine: str, intervals: dict[str, Interval]
) -> RunFacts:
    head = gathered.head
    return RunFacts(
        engine=engine or "+".join(gathered.distinct("engine")),
        bases=gathered.distinct("base"),
        networks=gathered.distinct("network"),
        profile=head.profile.name,
        plan_digest=gathered.plan_digest,
        taskset_ref=head.taskset.ref,
        taskset_total=head.taskset.total,
        phase=phase,
        parent=head.parent,
        planned_attempts=len(head.tasks) * head.n_attempts,
        coverage=gathered.coverage,
        missing=gathered.missing,
        intervals=intervals,
        problems=gathered.problems,
    )


def metadata(gathered: Gathered, facts: RunFacts) -> Metadata:
    head = gathered.head
    agent = head.agent
    versions = gathered.distinct("agent_version")
    started, finished = gathered.started_at, gathered.finished_at
    return Metadata(
        labels={
            "run": gathered.run_id,
            "engine": facts.engine,
            "base": ",".join(facts.bases),
            "network": ",".join(facts.networks),
            "profile": facts.profile,
            "plan": facts.plan_digest,
            "taskset": facts.taskset_ref,
            "dataset": head.publication.intake_dataset,
            "phase": facts.phase.value,
            **({"experiment": head.publication.experiment} if head.publication.experiment else {}),
        },
        target=Target(
            name=agent.name,
            version=versions[0] if len(versions) == 1 else None,
            config={
                "agent_name": agent.name,
                "agent_import_path": agent.import_path or None,
                "agent_model_name": agent.model.model if agent.model else None,
                "agent_kwargs": _redacted(agent.kwargs),
                "env_secrets": {
                    grant.name: grant.value for grant in head.grants.target if grant.kind == "secret"
                },
                "env_vars": {
                    grant.name: grant.kind for grant in head.grants.target if grant.kind != "secret"
                },
                "effective_agent": agent.import_path or agent.name,
                "n_attempts": head.n_attempts,
                "job_dir": None,
                "jobs_dir": None,
                "job_name": gathered.run_id,
                "reward_key": head.reward_key,
                "argo_harbor": facts.as_data(),
            },
        ),
        started_at=started,
        finished_at=finished,
        duration_sec=seconds_between(started, finished) if started and finished else None,
        sdk_version=f"argo-harbor {__version__}",
    )


def _redacted(value: Any, key: str = "") -> Any:
    if key and _CREDENTIAL.search(key):
        return "***"
    if isinstance(value, dict):
        return {name: _redacted(inner, str(name)) for name, inner in value.items()}
    if isinstance(value, list):
        return [_redacted(inner) for inner in value]
    return value
