"""The pieces that the report page is made of: rows, cells, reasons, cards. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from argo_harbor.bundle import wording
from argo_harbor.bundle.evidence import Link
from argo_harbor.bundle.facts import TaskFacts, TrialFacts
from argo_harbor.bundle.kinds import MISSING, Kind, kind_of, meaning
from argo_harbor.model.bundle import METRIC, MissingAttempt

MAX_NAMED = 200
"""Tasks named under one reason."""
FIRST_NAMED = 8


class Card(NamedTuple):
    label: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Counted:
    name: str
    sign: str
    label: str
    count: int


class Cell(NamedTuple):
    """One task in the picture; a sign for each attempt."""

    href: str
    title: str
    kinds: tuple[Kind, ...]


class Place(NamedTuple):
    task: str
    href: str
    """Its row on the page, or the table where the row is left out."""
    value: str = ""


@dataclass(frozen=True, slots=True)
class Reason:
    code: str
    meaning: str
    kind: Kind
    count: int
    example: str
    first: Sequence[Place]
    rest: Sequence[Place]
    cut: int
    """Places that are not named at all."""


class Bar(NamedTuple):
    height: float
    """Of 60."""
    title: str
    low: str
    high: str


@dataclass(frozen=True, slots=True)
class Rollup:
    name: str
    value: str
    interval: str
    median: str
    std_dev: str
    count: int
    nan: int


class Fact(NamedTuple):
    label: str
    value: str
    mono: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One planned attempt in the table."""

    task: str
    index: int
    attempt: int
    kind: Kind
    outcome: str
    outputs: tuple[str, ...] = ()
    sort: str = ""
    metric: str = METRIC
    seconds: str = ""
    time: str = ""
    tokens: str = ""
    tokens_text: str = ""
    cost: str = ""
    cost_text: str = ""
    links: tuple[Link, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.index}-{self.attempt}"


def reason_of(code: str, kind: Kind, places: list[tuple[Place, str]]) -> Reason:
    named = [place for place, _ in places[:MAX_NAMED]]
    return Reason(
        code=code,
        meaning=meaning(code),
        kind=kind,
        count=len(places),
        example=next((message for _, message in places if message not in ("", meaning(code))), ""),
        first=named[:FIRST_NAMED],
        rest=named[FIRST_NAMED:],
        cut=len(places) - len(named),
    )


def rows_of(task: TaskFacts, reward_key: str) -> list[Row]:
    rows = [_row(task, trial, reward_key) for trial in task.trials]
    rows += [_missing_row(task, gone) for gone in task.missing]
    return sorted(rows, key=lambda row: row.attempt)


def _row(task: TaskFacts, trial: TrialFacts, reward_key: str) -> Row:
    kind = kind_of(trial)
    counted = [count for count in (trial.prompt_tokens, trial.completion_tokens) if count is not None]
    others = [
        f"{key} {wording.number(value)}"
        for key, value in sorted(trial.rewards.items())
        if trial.reward is None or key != trial.reward_key
    ]
    head = () if trial.reward is None else (f"{reward_key} {wording.number(trial.reward)}",)
    return Row(
        task=task.name,
        index=task.entry.index,
        attempt=trial.attempt,
        kind=kind,
        outcome=trial.error or kind.label,
        outputs=(*head, *others) if head else (),
        sort="" if trial.reward is None else repr(trial.reward),
        seconds=f"{trial.seconds:.3f}",
        time=wording.duration(trial.seconds),
        tokens=str(sum(counted)) if counted else "",
        tokens_text=wording.tokens(sum(counted)) if counted else "",
        cost=repr(trial.cost_usd) if trial.cost_usd is not None else "",
        cost_text=wording.dollars(trial.cost_usd) if trial.cost_usd is not None else "",
        links=trial.links,
    )


def _missing_row(task: TaskFacts, gone: MissingAttempt) -> Row:
    return Row(task=task.name, index=task.entry.index, attempt=gone.attempt, kind=MISSING, outcome=gone.code)
