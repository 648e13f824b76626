"""pass@k over real records: what passes, what fails, what is not measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from argo_harbor.bundle.collect import Collector
from argo_harbor.bundle.gather import Gathered, gather
from argo_harbor.bundle.summary import summarize
from tests.support.records import Run, make_run


def gathered(run: Run) -> Gathered:
    return gather(Collector(run.run_id, run.store, run.head, run.plan))


def test_one_is_a_pass_dead_is_none_and_unscored_is_not_measured(tmp_path: Path) -> None:
    run = make_run(tmp_path, 4, attempts=2)
    run.add(0, 0)
    run.add(0, 1, reward=0.999)
    run.add(1, 0)
    run.add(1, 1, outcome="errored", error="agent_crashed")
    run.add(2, 0)
    run.add(2, 1, outcome="unscored", error="reward_missing")
    run.add(3, 0, outcome="infrastructure", error="sandbox_failed")
    summary, intervals = summarize(gathered(run))
    scores = {score.name: score for score in summary.scores.scores}
    first, both = scores["harbor_reward.reward.pass@1"], scores["harbor_reward.reward.pass@2"]
    assert (first.count, first.nan_count, first.mean) == (3, 1, pytest.approx((0.5 + 0.5 + 1) / 3))
    assert (both.count, both.nan_count, both.mean) == (2, 2, 1.0)
    reward = scores["harbor_reward.reward"]
    assert (reward.count, reward.nan_count) == (4, 4)
    assert intervals["harbor_reward.reward.pass@1"].tasks == 3
    assert "harbor_reward.reward" not in intervals


def test_nothing_measured_has_no_interval(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    summary, intervals = summarize(gathered(run))
    assert intervals == {}
    assert [score.mean for score in summary.scores.scores] == ["NaN", "NaN"]
    assert (summary.task_count, summary.trial_count, summary.error_count) == (1, 0, 0)


def test_measurements_are_rolled_up_where_trials_tell_them(tmp_path: Path) -> None:
    run = make_run(tmp_path, 2)
    run.add(0, usage={"prompt_tokens": 10, "cost_usd": 0.5})
    run.add(1)
    scores = {score.name: score for score in summarize(gathered(run)).summary.scores.scores}
    assert scores["runner.harbor.runtime_sec"].sum == 20.0
    assert (scores["runner.harbor.cost_usd"].sum, scores["runner.harbor.cost_usd"].nan_count) == (0.5, 1)
    assert "runner.harbor.completion_tokens" not in scores


def test_another_reward_key_names_the_score(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1, reward_key="accuracy")
    run.add(0, rewards={"accuracy": 0.5, "speed": 2.0}, reward_key="accuracy")
    summary = summarize(gathered(run)).summary
    assert summary.scores.scores[0].name == "harbor_reward.accuracy"
    assert summary.scores.scores[0].mean == 0.5
    assert list(summary.metric_coverage["harbor_reward"]) == ["accuracy"]
