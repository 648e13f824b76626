"""Rollups of numbers as `summary.json` has them, and the two estimates that need a formula. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from argo_harbor.model.bundle import Histogram, HistogramBin, Interval, Number, Percentiles, Score

HISTOGRAM_BINS = 10
Z_95 = 1.959963984540054
"""Two-sided 95 % quantile of the normal distribution."""


def rollup(name: str, values: Sequence[float], *, nan_count: int = 0) -> Score:
    """Mean, spread, percentiles and histogram of finite values; every number is NaN when there is none.

    `nan_count` says how many planned values are not among them. `std_dev` is the population's,
    `sample_std_dev` divides by n - 1 and is NaN for a single value. Percentiles interpolate linearly.
    Values so large that a rollup overflows leave NaN in its place.
    """
    ordered = sorted(values)
    count = len(ordered)
    total = _sum(ordered)
    middle = total / count if count else math.nan
    squares = _sum((value - middle) * (value - middle) for value in ordered)
    variance = squares / count if count else math.nan
    sample = squares / (count - 1) if count > 1 else math.nan
    return Score(
        name=name,
        count=count,
        nan_count=nan_count,
        sum=token(total),
        mean=token(middle),
        min=token(ordered[0] if count else math.nan),
        max=token(ordered[-1] if count else math.nan),
        median=token(percentile(ordered, 50)),
        std_dev=token(math.sqrt(variance)),
        variance=token(variance),
        sample_std_dev=token(math.sqrt(sample)),
        sample_variance=token(sample),
        percentiles=Percentiles(
            **{f"p{share}": token(percentile(ordered, share)) for share in range(10, 101, 10)}
        ),
        histogram=histogram(ordered),
    )


def mean(values: Sequence[float]) -> float | None:
    """None when there is no value, or when the sum overflows."""
    found = _sum(values) / len(values) if values else math.nan
    return found if math.isfinite(found) else None


def _sum(values: Iterable[float]) -> float:
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


def token(value: float) -> Number:
    """JSON has no NaN: the bundle writes the word."""
    return value if math.isfinite(value) else "NaN"


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` percent of sorted values lie, between neighbours by straight line."""
    if not ordered:
        return math.nan
    place = (len(ordered) - 1) * share / 100
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def histogram(ordered: Sequence[float]) -> Histogram:
    """Ten bins of equal width over sorted values; one bin when they are all equal."""
    if not ordered:
        return Histogram(bins=())
    low, high = ordered[0], ordered[-1]
    width = (high - low) / HISTOGRAM_BINS
    if width == 0 or not math.isfinite(width):
        return Histogram(bins=(HistogramBin(lower_bound=low, upper_bound=high, count=len(ordered)),))
    counts = [0] * HISTOGRAM_BINS
    for value in ordered:
        counts[min(int((value - low) / width), HISTOGRAM_BINS - 1)] += 1
    edges = [low + width * number for number in range(HISTOGRAM_BINS)] + [high]
    return Histogram(
        bins=tuple(
            HistogramBin(lower_bound=edges[number], upper_bound=edges[number + 1], count=counts[number])
            for number in range(HISTOGRAM_BINS)
        )
    )


def pass_at_k(n: int, c: int, k: int) -> float:
    """Unbiased chance that at least one of k attempts passes, from c passes in n attempts (n >= k >= 1).

    1 - C(n-c, k) / C(n, k), Chen et al., "Evaluating Large Language Models Trained on Code", 2021.
    """
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


def ks_for(n_attempts: int) -> list[int]:
    """The k worth reporting: 1, powers of two, multiples of five as far as they go, and all attempts."""
    doubled = [1 << power for power in range(n_attempts.bit_length()) if 1 << power <= n_attempts]
    return sorted({*doubled, *range(5, min(n_attempts, 20) + 1, 5), n_attempts})


def wilson(share: float, sample: int) -> Interval:
    """Wilson score interval, 95 %, of a share observed over `sample` tasks (>= 1).

    With several attempts at each task `share` is the mean of the tasks' own shares. Its variance is then at
    most that of one attempt each, so the interval is never too narrow.
    """
    z2 = Z_95**2 / sample
    centre = (share + z2 / 2) / (1 + z2)
    half = Z_95 / (1 + z2) * math.sqrt(share * (1 - share) / sample + z2 / (4 * sample))
    return Interval(low=max(0.0, centre - half), high=min(1.0, centre + half), tasks=sample)
