"""Whether the run still wants a try that begins in a pod: cancelled runs, the queue's and the run's budgets.

There is no server to ask, so the store's objects and its clock decide. The run's budget counts from its first
trial's start. Every try would have to list all evidence of the run to find that, so the first ones leave a
small mark each, and the earliest mark counts.
"""

from __future__ import annotations

import time

from argo_harbor.model.plan import Limits
from argo_harbor.runner.place import Admission
from argo_harbor.store import layout
from argo_harbor.store.base import Entry, Store


def admission(store: Store, run: str, limits: Limits, started: str) -> Admission:
    """Judge a try whose `started.json` has the key `started`.

    Raises: PlatformError `store_write_failed`, `store_unreadable`.
    """
    if any(True for _ in store.list(layout.cancel_marks(run))):
        return Admission("cancelled", "the run was cancelled before this trial started")
    now = store.clock()
    marks = list(store.list(layout.start_marks(run)))
    if not marks:
        late = _queued_too_long(store, run, limits, now)
        if late is not None:
            return late
        mark = layout.start_mark(run, started)
        store.put(mark, b"")
        marks = list(store.list(layout.start_marks(run)))
    first = min((mark.modified for mark in marks), default=now)
    left = first + limits.timeout_seconds - now
    if left <= 0:
        spent = f"the run's {limits.timeout_seconds} s were spent before this trial started"
        return Admission("expired", spent)
    return Admission(deadline=time.time() + left)


def _queued_too_long(store: Store, run: str, limits: Limits, now: float) -> Admission | None:
    """The first trial of a run finds that it waited too long. A plain `argo submit` leaves no request; its
    queue ends with the workflow's own deadline."""
    asked = _entry(store, layout.request(run))
    if asked is None or now - asked.modified <= limits.queue_timeout_seconds:
        return None
    return Admission("expired", f"nothing of the run started within {limits.queue_timeout_seconds} s")


def _entry(store: Store, key: str) -> Entry | None:
    return next((entry for entry in store.list(key) if entry.key == key), None)
