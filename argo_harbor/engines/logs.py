"""The logs that trials left in the store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from argo_harbor.store import layout
from argo_harbor.store.base import Store

MAX_BYTES = 1 << 20
"""Of one file; the end is what people look for, so that is what is kept."""
LOGS = (".log", ".txt", ".out", ".err")


class TrialLog(NamedTuple):
    """One log file of one try."""

    attempt: int
    try_: int
    file: str
    """Relative to the try's folder."""
    text: str


def trial_logs(
    run_id: str, store: Store, index: int, *, attempt: int | None = None, file: str = ""
) -> Iterator[TrialLog]:
    """Logs of every try of a task, by attempt and try; of one attempt or one file where that is named.

    Artifacts are left out: they are what the agent made, not what was logged.
    """
    prefix = f"{layout.trials(run_id)}{index}/" if attempt is None else layout.attempt(run_id, index, attempt)
    for entry in store.list(prefix):
        found = layout.parse_try(entry.key)
        if found is None or (found.file != file if file else not _is_log(found.file)):
            continue
        with store.open(entry.key) as source:
            if entry.size > MAX_BYTES:
                source.seek(entry.size - MAX_BYTES)
            text = source.read(MAX_BYTES).decode(errors="replace")
        yield TrialLog(found.attempt, found.try_, found.file, text)


def _is_log(file: str) -> bool:
    return (
        file.endswith(LOGS)
        and "artifacts/" not in file
        and not file.endswith(("reward.txt", "exit-code.txt"))
    )
