"""How the report spells numbers."""

from __future__ import annotations

import math

import pytest

from argo_harbor.bundle import wording


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0s"), (9.94, "9.9s"), (9.96, "10s"), (59.4, "59s"), (192, "3m 12s"), (3599.9, "1h 00m"),
        (7500, "2h 05m"), (90_000, "1d 01h"), (-1, "–"), (math.inf, "–"),
    ],
)  # fmt: skip
def test_duration(seconds: float, text: str) -> None:
    assert wording.duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("NaN", "–"), (1.0, "1"), (0.5, "0.5"), (0.33333, "0.3333"), (1234.5, "1,234"), (1e300, "1e+300"),
        (0.000012, "1.20e-05"), (-0.25, "-0.25"), (1e18 + 0.5, "1e+18"),
    ],
)  # fmt: skip
def test_number(value: float | str, text: str) -> None:
    assert wording.number(value) == text


def test_tokens_dollars_percent() -> None:
    assert [wording.tokens(count) for count in (999, 1200, 3_450_000)] == ["999", "1.2k", "3.45M"]
    assert [wording.dollars(amount) for amount in (0, 0.0123, 1234.5)] == ["$0.00", "$0.0123", "$1,234.50"]
    assert wording.percent(0.5) == "50.0%"
