"""What two plans differ in, for people: shown when one key was used for two requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from argo_harbor.model.plan import PlanHead

MAX_SHOWN = 12
_LENGTH = 60


class Difference(NamedTuple):
    key: str
    """Dotted."""
    text: str
    """`old → new`."""


def plan_differences(old: PlanHead, new: PlanHead) -> list[Difference]:
    """The first differences; how many more there are stands in a last one."""
    found = list(_compare(old.as_data(), new.as_data(), ""))
    if len(found) > MAX_SHOWN:
        found = [*found[:MAX_SHOWN], Difference("plan", f"and {len(found) - MAX_SHOWN} more differences")]
    return found


def _compare(old: object, new: object, key: str) -> Iterator[Difference]:
    if old == new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in dict.fromkeys([*old, *new]):
            yield from _compare(old.get(name), new.get(name), f"{key}.{name}" if key else str(name))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _compare(one, other, f"{key}[{number}]")
    else:
        yield Difference(key, f"{_short(old)} → {_short(new)}")


def _short(value: object) -> str:
    if isinstance(value, list):
        return f"{len(value)} entries"
    text = "nothing" if value is None or value == "" else str(value)
    return text if len(text) <= _LENGTH else f"{text[: _LENGTH - 1]}…"
