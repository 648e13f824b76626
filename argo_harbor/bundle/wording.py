"""How the report spells times, counts and numbers. Pure."""

from __future__ import annotations

import math


def duration(seconds: float) -> str:
    """`0.4s`, `12s`, `3m 12s`, `2h 05m`, `3d 04h`."""
    if seconds < 0 or not math.isfinite(seconds):
        return "–"
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02}m"
    return f"{whole // 86400}d {whole % 86400 // 3600:02}h"


def number(value: float | str) -> str:
    """At most four digits after the point, none that say nothing; the NaN token as a dash."""
    if isinstance(value, str):
        return "–"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.4g}"
    short = f"{value:.4f}".rstrip("0").rstrip(".")
    return short if float(short) else f"{value:.2e}"


def tokens(count: int) -> str:
    """`950`, `12.3k`, `4.56M`."""
    if count < 1000:
        return str(count)
    if count < 1_000_000:
        return f"{count / 1000:.1f}k"
    return f"{count / 1_000_000:.2f}M"


def dollars(amount: float) -> str:
    """`$12.30`; four digits below ten cents, since single trials are often that cheap."""
    return f"${amount:,.2f}" if amount == 0 or amount >= 0.1 else f"${amount:.4f}"


def percent(share: float) -> str:
    return f"{share * 100:.1f}%"
