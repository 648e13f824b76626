"""Rollups, pass@k and intervals against the standard library, brute force and published values."""

from __future__ import annotations

import itertools
import math
import statistics as standard

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argo_harbor.bundle import statistics

FINITE = st.floats(-1e6, 1e6)


@given(st.lists(FINITE, min_size=2, max_size=40))
def test_a_rollup_is_the_standard_librarys(values: list[float]) -> None:
    score = statistics.rollup("x", values, nan_count=3)
    assert score.count == len(values)
    assert score.nan_count == 3
    assert score.mean == pytest.approx(standard.fmean(values), abs=1e-6)
    assert score.median == pytest.approx(standard.median(values), abs=1e-9)
    assert score.std_dev == pytest.approx(standard.pstdev(values), rel=1e-6, abs=1e-6)
    assert score.sample_std_dev == pytest.approx(standard.stdev(values), rel=1e-6, abs=1e-6)
    assert (score.min, score.max, score.percentiles.p100) == (min(values), max(values), max(values))
    deciles = standard.quantiles(values, n=10, method="inclusive")
    assert score.percentiles.p30 == pytest.approx(deciles[2], abs=1e-6)
    assert sum(bar.count for bar in score.histogram.bins) == len(values)


def test_nothing_is_nan_and_never_zero() -> None:
    score = statistics.rollup("x", [], nan_count=4)
    assert (score.mean, score.median, score.min, score.std_dev) == ("NaN",) * 4
    assert (score.sum, score.count, score.nan_count, score.histogram.bins) == (0.0, 0, 4, ())
    assert statistics.mean([]) is None


def test_a_single_value_has_no_sample_deviation() -> None:
    score = statistics.rollup("x", [0.5])
    assert (score.mean, score.std_dev, score.sample_std_dev) == (0.5, 0.0, "NaN")
    assert [(bar.lower_bound, bar.upper_bound, bar.count) for bar in score.histogram.bins] == [(0.5, 0.5, 1)]


def test_numbers_too_large_for_a_rollup_are_nan() -> None:
    score = statistics.rollup("x", [1e308, 1e308, -1e308])
    assert (score.variance, score.max) == ("NaN", 1e308)
    assert statistics.rollup("x", [1e308, 1e308]).sum == "NaN"
    assert statistics.mean([1e308, 1e308]) is None


@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_pass_at_k_is_the_share_of_all_draws(n: int) -> None:
    for c in range(n + 1):
        for k in range(1, n + 1):
            draws = list(itertools.combinations([True] * c + [False] * (n - c), k))
            assert statistics.pass_at_k(n, c, k) == pytest.approx(sum(map(any, draws)) / len(draws))


@pytest.mark.parametrize(("attempts", "ks"), [(1, [1]), (2, [1, 2]), (5, [1, 2, 4, 5]), (8, [1, 2, 4, 5, 8])])
def test_ks(attempts: int, ks: list[int]) -> None:
    assert statistics.ks_for(attempts) == ks


def test_wilson_against_published_values() -> None:
    # Newcombe, "Two-sided confidence intervals for the single proportion", 1998, table I: 81 of 263, 0 of 20.
    first = statistics.wilson(81 / 263, 263)
    assert (first.low, first.high) == (pytest.approx(0.2553, abs=5e-5), pytest.approx(0.3662, abs=5e-5))
    none = statistics.wilson(0, 20)
    assert (none.low, none.high) == (0.0, pytest.approx(0.1611, abs=5e-5))


@given(st.floats(0, 1), st.integers(1, 10_000))
def test_an_interval_holds_its_share(share: float, sample: int) -> None:
    interval = statistics.wilson(share, sample)
    assert 0 <= interval.low <= interval.high <= 1
    assert interval.low - 1e-9 <= share <= interval.high + 1e-9
    assert math.isfinite(interval.high)
