"""What a check says: fine, a warning, no with its cure, or that it could not look."""

from __future__ import annotations

from typing import Literal, NamedTuple

type Status = Literal["ok", "warning", "failed", "skipped"]


class Result(NamedTuple):
    """One line of the doctor's table."""

    name: str
    status: Status
    message: str
    hint: str = ""
    """The cure, in one line."""


def ok(name: str, message: str) -> Result:
    return Result(name, "ok", message)


def warning(name: str, message: str, hint: str) -> Result:
    return Result(name, "warning", message, hint)


def failed(name: str, message: str, hint: str) -> Result:
    return Result(name, "failed", message, hint)


def skipped(name: str, message: str, hint: str = "") -> Result:
    """It could not be looked at, which is no verdict."""
    return Result(name, "skipped", message, hint)
