"""The gate after the canary tasks: do they show that the rest is worth running?

The local engine asks with the records that it has, the gate's pod and the merge read them from the store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from argo_harbor.bundle.collect import Collector
from argo_harbor.model.record import TrialRecord
from argo_harbor.model.states import Outcome

STOPPING_ERRORS = frozenset(
    {
        "agent_setup_failed",
        "agent_auth_failed",
        "model_unknown",
        "healthcheck_failed",
        "verifier_crashed",
        "image_build_failed",
        "policy_mismatch",
        "sandbox_failed",
        "task_unusable",
        "internal",
    }
)
"""Infrastructure, install, auth and judge errors: they would meet the other tasks as well.

An agent that fails a task, even by a crash or a timeout, says nothing about the others.
"""


def gate(results: Iterable[tuple[str, TrialRecord | None]]) -> tuple[str, ...]:
    """Why the rest must not run, one reason for each trial that stops it; empty when it may.

    `results` pairs the task's name with the last record of each canary trial.
    """
    return tuple(reason for name, record in results if (reason := _reason(name, record)))


def read_canary(collector: Collector, tasks: Collection[int]) -> tuple[str, ...]:
    """The same of the canary tasks of a stored run, given by their indexes.

    Raises PlatformError `plan_unreadable`, or that of the store.
    """
    reasons = []
    for collected in collector.attempts(only=tasks):
        name = collected.entry.name
        if collected.missing is not None:
            reasons.append(f"{name}: {collected.missing.code}: {collected.missing.cause}")
        elif reason := _reason(name, collected.record):
            reasons.append(reason)
    return tuple(reasons)


def _reason(name: str, record: TrialRecord | None) -> str:
    if record is None:
        return f"{name}: no trial of it could run"
    code = record.error.code if record.error is not None else ""
    if record.outcome is Outcome.INFRASTRUCTURE or code in STOPPING_ERRORS:
        return f"{name}: {code or record.outcome.value}"
    return ""
