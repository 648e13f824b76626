"""`summary.json`: coverage before scores, rollups, pass@k, and every value by task. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from argo_harbor.bundle import statistics
from argo_harbor.bundle.facts import TaskFacts, trial_id
from argo_harbor.bundle.gather import Gathered
from argo_harbor.model.bundle import METRIC, Interval, Score, Scores, Summary, TaskMetricValue
from argo_harbor.model.states import Outcome

MEASURED = ("seconds", "cost_usd", "prompt_tokens", "completion_tokens")
_RUNNER_NAMES = {"seconds": "runtime_sec"}


class Summed(NamedTuple):
    summary: Summary
    intervals: dict[str, Interval]
    """By the name of a score; only shares have one."""


def score_name(reward_key: str) -> str:
    """Name of the reward's rollup: `harbor_reward.<reward key>`."""
    return f"{METRIC}.{reward_key}"


def summarize(gathered: Gathered) -> Summed:
    """Everything that can be said about the rewards, and about the trials' time, tokens and money."""
    name = score_name(gathered.head.reward_key)
    coverage = gathered.coverage
    rewards = [trial.reward for trial in gathered.trials if trial.reward is not None]
    scores = [statistics.rollup(name, rewards, nan_count=coverage.failed + coverage.missing)]
    intervals: dict[str, Interval] = {}
    for k in statistics.ks_for(gathered.head.n_attempts):
        score = _pass_at_k(f"{name}.pass@{k}", k, gathered.tasks)
        scores.append(score)
        if isinstance(score.mean, float):
            intervals[score.name] = statistics.wilson(score.mean, score.count)
    scores.extend(_measurements(gathered))
    return Summed(
        Summary(
            scores=Scores(scores=tuple(scores)),
            metric_coverage={METRIC: {gathered.head.reward_key: coverage}},
            task_metric_values={task.name: {name: _values(task)} for task in gathered.tasks},
            error_trial_ids=_errors(gathered),
            task_count=len(gathered.tasks),
            trial_count=len(gathered.trials),
            score_count=len(gathered.trials),
            error_count=sum(bool(trial.error) for trial in gathered.trials),
        ),
        intervals,
    )


def passes(task: TaskFacts) -> tuple[int, int]:
    """Measured attempts and passes among them.

    A pass is a reward of exactly 1.0. An errored attempt is measured and no pass: the agent had its chance.
    An unscored one, an infrastructure fault and a missing attempt say nothing about the agent: they are left
    out.
    """
    measured = [trial for trial in task.trials if trial.scored or trial.outcome is Outcome.ERRORED]
    return len(measured), sum(trial.reward == 1.0 for trial in measured)


def _pass_at_k(name: str, k: int, tasks: Sequence[TaskFacts]) -> Score:
    counted = [passes(task) for task in tasks]
    values = [statistics.pass_at_k(n, c, k) for n, c in counted if n >= k]
    return statistics.rollup(name, values, nan_count=len(tasks) - len(values))


def _measurements(gathered: Gathered) -> list[Score]:
    found = []
    for field in MEASURED:
        values = [value for trial in gathered.trials if (value := getattr(trial, field)) is not None]
        if values:
            name = f"runner.harbor.{_RUNNER_NAMES.get(field, field)}"
            absent = len(gathered.trials) - len(values)
            found.append(statistics.rollup(name, values, nan_count=absent))
    return found


def _values(task: TaskFacts) -> tuple[TaskMetricValue, ...]:
    values = {trial.attempt: (trial.id, trial.reward) for trial in task.trials}
    for gone in task.missing:
        values[gone.attempt] = (trial_id(task.name, gone.attempt), None)
    return tuple(
        TaskMetricValue(trial_id=identity, value_type="missing" if reward is None else "number", value=reward)
        for _, (identity, reward) in sorted(values.items())
    )


def _errors(gathered: Gathered) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for trial in gathered.trials:
        if trial.error:
            found.setdefault(trial.error, []).append(trial.id)
    return {code: tuple(ids) for code, ids in sorted(found.items())}
