"""The logs that trials and builds left in the store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pydantic import ValidationError

from argo_harbor.bundle.plans import find_plan, read_head, read_part
from argo_harbor.model.build import BuildRecord
from argo_harbor.model.documents import LogText
from argo_harbor.store import layout
from argo_harbor.store.base import KeyNotFound, Store

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


def build_logs(run_id: str, store: Store, index: int | None = None) -> list[LogText]:
    """How images of a run were built, by image; of one task where that is named.

    Raises: UsageError `unknown_run`, PlatformError.
    """
    plan = find_plan(run_id, store)
    head = read_head(plan, store)
    tasks: dict[str, str] = {}
    for entry in head.running:
        if index in (None, entry.index):
            for image in read_part(head, plan, entry.index, store).sides.values():
                if image.key:
                    tasks.setdefault(image.key, entry.name)
    found = []
    for item in store.list(layout.builds(run_id)):
        record = _build_record(item.key, store)
        if record is not None and record.image_key in tasks:
            said = (
                f"pushed {record.reference} {record.digest}"
                if record.ok
                else f"{record.step}\n{record.message}"
            )
            file = item.key.removeprefix(layout.run(run_id))
            found.append(
                LogText.from_data(
                    {"task": tasks[record.image_key], "attempt": 0, "try": 0, "file": file, "text": said}
                )
            )
    return found


def _build_record(key: str, store: Store) -> BuildRecord | None:
    try:
        return BuildRecord.from_json(store.get(key))
    except (KeyNotFound, ValidationError):
        return None


def _is_log(file: str) -> bool:
    return (
        file.endswith(LOGS)
        and "artifacts/" not in file
        and not file.endswith(("reward.txt", "exit-code.txt"))
    )
