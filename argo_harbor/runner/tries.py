"""The tries of one attempt as the store has them: which came before, and whether one has decided."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import ValidationError

from argo_harbor.model.record import AgentHalf, TrialRecord
from argo_harbor.model.states import Outcome
from argo_harbor.store import layout
from argo_harbor.store.base import KeyNotFound, Store


class Earlier(NamedTuple):
    """How the earlier tries of an attempt ended."""

    decided: bool
    """Whether one of them is final, so that nothing is left to do."""
    outcomes: tuple[Outcome, ...]
    """Of those with a record, and `infrastructure` for those that started and left none."""


def earlier_tries(store: Store, *, run: str, index: int, attempt: int, before: int) -> Earlier:
    """The tries of an attempt with a number below `before`."""
    outcomes: list[Outcome] = []
    for folder in _folders(store, run, index, attempt):
        key = layout.parse_try(folder + layout.TRIAL)
        if key is None or key.try_ >= before:
            continue
        record = read_record(store, folder)
        if record is None:
            outcomes.append(Outcome.INFRASTRUCTURE)
        elif record.final:
            return Earlier(True, ())
        else:
            outcomes.append(record.outcome)
    return Earlier(False, tuple(outcomes))


def read_record(store: Store, folder: str) -> TrialRecord | None:
    """The record of a try, None when it is absent or unreadable."""
    try:
        return TrialRecord.from_json(store.get(folder + layout.TRIAL))
    except (KeyNotFound, ValidationError):
        return None


def has_final(store: Store, *, run: str, index: int, attempt: int) -> bool:
    """Whether any try of an attempt has decided it."""
    records = (read_record(store, folder) for folder in _folders(store, run, index, attempt))
    return any(record is not None and record.final for record in records)


def find_half(store: Store, *, run: str, index: int, attempt: int) -> tuple[str, AgentHalf] | None:
    """Folder and content of the latest agent's half of an attempt, None when there is none."""
    for folder in reversed(_folders(store, run, index, attempt)):
        try:
            return folder, AgentHalf.from_json(store.get(folder + layout.AGENT_HALF))
        except (KeyNotFound, ValidationError):
            continue
    return None


def _folders(store: Store, run: str, index: int, attempt: int) -> list[str]:
    """Folders of tries, by number, then by their start."""
    found: dict[str, tuple[int, float]] = {}
    for entry in store.list(layout.attempt(run, index, attempt)):
        key = layout.parse_try(entry.key)
        if key is not None and key.file == layout.STARTED:
            found[entry.key[: -len(key.file)]] = (key.try_, entry.modified)
    return sorted(found, key=lambda folder: found[folder])
