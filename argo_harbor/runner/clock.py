"""The one spelling of a time, in records and in what the pod commands print."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> str:
    """RFC 3339 in UTC with microseconds."""
    return stamp(datetime.now(UTC))


def stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def say(text: str) -> None:
    """Print a line of a pod's log at once, with its time in whole seconds."""
    print(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {text}", flush=True)
