"""What an earlier merge of the same run found out about attempts that never started.

The cluster forgets why within hours, so that a later merge and whoever looks at the run read it here.
"""

from __future__ import annotations

from pydantic import ValidationError

from argo_harbor.model.bundle import METADATA_FILE, Metadata, RunFacts
from argo_harbor.model.causes import NOTHING_KNOWN, Cause, Causes
from argo_harbor.model.states import RunPhase
from argo_harbor.store import layout
from argo_harbor.store.base import KeyNotFound, Store

UNSTARTED = Cause("not_started", "no try of it has started")
"""Of an attempt about which nothing is known."""
_ENDINGS = (RunPhase.CANCELLED.value, RunPhase.EXPIRED.value)


def earlier_causes(run_id: str, store: Store) -> Causes:
    """Nothing known where no merge has written its metadata, or one of another version."""
    try:
        target = Metadata.from_json(store.get(layout.bundle(run_id, METADATA_FILE))).target
        facts = RunFacts.from_data(target.config["argo_harbor"]) if target else None
    except (KeyNotFound, KeyError, ValidationError):
        return NOTHING_KNOWN
    told = {
        (task.index, attempt.attempt): Cause(attempt.code, attempt.cause)
        for task in (facts.missing if facts else ())
        for attempt in task.attempts
        if not attempt.tries
    }
    # A merge that came too early knew nothing; how the run ended is known without it.
    return Causes(
        unstarted={
            key: cause for key, cause in told.items() if cause != UNSTARTED and cause.code not in _ENDINGS
        }
    )
