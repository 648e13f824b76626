"""The marks by which an engine tells runners and merges that somebody ended a run."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

from argo_harbor.model.base import canonical_json
from argo_harbor.store import layout
from argo_harbor.store.base import Store


def now() -> str:
    """RFC 3339 in UTC with microseconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def mark_cancelled(store: Store, run_id: str, reason: str, **more: str) -> None:
    """Say that the run is cancelled. `more` are further fields of the mark.

    Raises: PlatformError `store_write_failed`.
    """
    mark = {"at": now(), "reason": reason, **more}
    store.put(layout.cancel_mark(run_id, secrets.token_hex(16)), canonical_json(mark))
