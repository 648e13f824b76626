"""When a CronWorkflow starts: the cron lines that Argo's own parser takes, called by the compiler.

Narrower than many crons: no `L`, `W` or `#`, days of the week from 0 to 6, no range that wraps around.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from argo_harbor.errors import UsageError

NEVER = "0 0 * * *"
"""Stands in a CronWorkflow without a schedule, which is suspended, because Argo asks for one."""


class _Field(NamedTuple):
    name: str
    first: int
    last: int
    names: tuple[str, ...] = ()
    """Names of the values from `first` on."""


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 6, _DAYS),
)
_MACRO = re.compile(r"@(yearly|annually|monthly|weekly|daily|midnight|hourly)")
_VALUE = "[0-9]{1,4}|[A-Za-z]{3}"
_ENTRY = re.compile(rf"(?:[*?]|(?P<begin>{_VALUE})(?:-(?P<end>{_VALUE}))?)(?:/(?P<step>[0-9]{{1,4}}))?")


def check_schedule(schedule: str) -> str:
    """A cron line of five fields, or one of cron's words. Raises UsageError."""
    fields = schedule.split(" ")
    if _MACRO.fullmatch(schedule):
        return schedule
    if len(fields) != len(_FIELDS):
        raise _refusal(f"{schedule!r} is no schedule")
    for text, field in zip(fields, _FIELDS, strict=True):
        if not all(_is_entry(entry, field) for entry in text.split(",")):
            raise _refusal(
                f"{schedule!r} is no schedule: {text!r} is no {field.name} from {field.first} to {field.last}"
            )
    return schedule


def _is_entry(text: str, field: _Field) -> bool:
    match = _ENTRY.fullmatch(text)
    if match is None or (match["step"] and int(match["step"]) == 0):
        return False
    if match["begin"] is None:
        return True
    begin = _value(match["begin"], field)
    end = begin if match["end"] is None else _value(match["end"], field)
    return begin is not None and end is not None and field.first <= begin <= end <= field.last


def _value(text: str, field: _Field) -> int | None:
    if text.isdecimal():
        return int(text)
    name = text.lower()
    return field.first + field.names.index(name) if name in field.names else None


def _refusal(message: str) -> UsageError:
    return UsageError(
        "unknown_flag_value", message, hint='give five fields of cron, such as --schedule "0 3 * * 1"'
    )
