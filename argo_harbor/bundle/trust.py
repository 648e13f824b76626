"""What must be true of a `trial.json` before it counts.

A record is written next to untrusted code and read back by another program, perhaps of another version: one
that is broken, newer, or speaks of another try is treated as if it were not there, and reported.
"""

from __future__ import annotations

import json
import re
from datetime import datetime

from pydantic import ValidationError

from argo_harbor.model.record import TRIAL_SCHEMA, TrialError, TrialRecord
from argo_harbor.model.states import Outcome

MAX_RECORD_BYTES = 4 << 20
"""A record with every field at its limit stays well below; more is not ours."""

_SAFE_PART = re.compile(r"^(?!\.{1,2}$)[^/\\\x00-\x1f\x7f]{1,255}$")


class RecordRejected(Exception):
    """This record does not count. `code` is stable, the message says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def read_record(
    data: bytes, *, run: str, plan: str, index: int, attempt: int, try_: int, uid: str, task_name: str
) -> TrialRecord:
    """The record of exactly that try. `uid` is the first 8 hex of the pod's uid, as in the key.

    Raises RecordRejected with `record_broken`, `record_newer` or `record_foreign`.
    """
    try:
        record = TrialRecord.from_json(data)
    except ValidationError as error:
        raise _unreadable(data, error) from error
    ref = record.ref
    if (
        (ref.run, ref.plan, ref.index, ref.attempt, ref.try_) != (run, plan, index, attempt, try_)
        or ref.uid.replace("-", "")[:8] != uid
        or record.task_name != task_name
    ):
        raise RecordRejected(
            "record_foreign", f"it speaks of try {ref.try_} of {record.task_name} in {ref.run}"
        )
    if record.outcome is Outcome.SCORED and record.reward_key not in (record.rewards or {}):
        raise RecordRejected("record_broken", "it is scored and has no reward of its key")
    if unsafe := [path for path in record.files if not is_safe_path(path)]:
        raise RecordRejected("record_broken", f"it names a file outside its folder: {unsafe[0]!r}")
    try:
        seconds_between(record.started_at, record.finished_at)
    except ValueError as error:
        raise RecordRejected("record_broken", "its times are no timestamps") from error
    if record.outcome is not Outcome.SCORED and record.error is None:
        return record.model_copy(
            update={"error": TrialError(code="internal", message="the record names no error")}
        )
    return record


def _unreadable(data: bytes, error: ValidationError) -> RecordRejected:
    try:
        schema = json.loads(data).get("schema_version")
    except (ValueError, AttributeError, RecursionError):
        return RecordRejected("record_broken", "it is no JSON object")
    if schema != TRIAL_SCHEMA:
        return RecordRejected("record_newer", f"its schema is {str(schema)[:40]!r}, not {TRIAL_SCHEMA!r}")
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return RecordRejected("record_broken", f"{where}: {first['msg']}")


def is_safe_path(path: str) -> bool:
    """Whether a relative path stays where it starts, on any system."""
    return len(path) <= 4096 and all(_SAFE_PART.match(part) for part in path.split("/"))


def seconds_between(start: str, end: str) -> float:
    """Raises ValueError when one of them is no timestamp with a time zone."""
    began, ended = datetime.fromisoformat(start), datetime.fromisoformat(end)
    if began.tzinfo is None or ended.tzinfo is None:
        raise ValueError("a timestamp without a time zone")
    return (ended - began).total_seconds()
