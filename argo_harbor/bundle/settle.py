"""Waits for what still runs of a run before its records are merged.

After a stop the exit handler starts beside dying pods, which have two minutes to upload what they have.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from argo_harbor.store import layout
from argo_harbor.store.base import Store

SECONDS = 150.0
"""More than a pod's grace period: what has left no record by then is lost."""
_LOOK_SECONDS = 3.0

Alive = Callable[[], frozenset[str] | None]
"""First 8 hex of the uid of each pod that has not ended; None when nobody can be asked."""


@dataclass(slots=True)
class _Tries:
    started: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)


def wait_for_tries(
    run_id: str,
    store: Store,
    *,
    alive: Alive,
    seconds: float = SECONDS,
    say: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Wait until every try that started has left its record, its pod is gone, or the time is over.

    Returns how many left none. Raises PlatformError of the store.
    """
    until = time.monotonic() + seconds
    told = 0
    while True:
        running = _running(run_id, store)
        living = alive() if running else frozenset()
        waited_for = running if living is None else {uid for uid in running if uid in living}
        if not waited_for or time.monotonic() >= until:
            return len(running)
        if len(waited_for) != told:
            told = len(waited_for)
            say(f"waiting for the records of {told} tries that are still ending")
        sleep(_LOOK_SECONDS)


def _running(run_id: str, store: Store) -> set[str]:
    """Uids, 8 hex, of tries that have started and left neither a record nor the half of one."""
    tries = _Tries()
    for entry in store.list(layout.trials(run_id)):
        key = layout.parse_try(entry.key)
        if key is None:
            continue
        if key.file == layout.STARTED:
            tries.started.add(key.uid)
        elif key.file in (layout.TRIAL, layout.AGENT_HALF):
            tries.ended.add(key.uid)
    return tries.started - tries.ended
