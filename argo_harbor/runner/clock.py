"""The one spelling of a time in records."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> str:
    """RFC 3339 in UTC with microseconds."""
    return stamp(datetime.now(UTC))


def stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
