"""Why a task has no image: the build records of a run, read only when an attempt never started."""

from __future__ import annotations

from functools import cached_property
from threading import Lock

from pydantic import ValidationError

from argo_harbor.bundle.plans import read_part
from argo_harbor.model.build import BuildRecord
from argo_harbor.model.causes import Cause
from argo_harbor.model.plan import PlanHead, TaskEntry
from argo_harbor.store import layout
from argo_harbor.store.base import KeyNotFound, Store


class FailedBuilds:
    """Images of a run that no try has built."""

    def __init__(self, run_id: str, store: Store, head: PlanHead, plan_digest: str) -> None:
        self._run_id = run_id
        self._store = store
        self._head = head
        self._plan = plan_digest
        self._reading = Lock()

    def of(self, entry: TaskEntry) -> Cause | None:
        """What failed when an image of that task was built; None when nothing is known to have failed.

        Raises PlatformError `plan_unreadable`.
        """
        if not self._failed:
            return None
        part = read_part(self._head, self._plan, entry.index, self._store)
        for image in part.sides.values():
            if image.key in self._failed:
                record = self._failed[image.key]
                said = ": ".join(part for part in (record.step, record.message) if part) or "no output"
                return Cause(record.code or "image_build_failed", said)
        return None

    @property
    def _failed(self) -> dict[str, BuildRecord]:
        # Attempts are decided several at once: one of them reads, the others wait for it.
        with self._reading:
            return self._read

    @cached_property
    def _read(self) -> dict[str, BuildRecord]:
        latest: dict[str, tuple[float, BuildRecord]] = {}
        built: set[str] = set()
        for entry in self._store.list(layout.builds(self._run_id)):
            try:
                record = BuildRecord.from_json(self._store.get(entry.key))
            except (KeyNotFound, ValidationError):
                continue  # says nothing; the attempt stays missing with what else is known
            if record.ok:
                built.add(record.image_key)
            elif record.image_key not in latest or entry.modified >= latest[record.image_key][0]:
                latest[record.image_key] = (entry.modified, record)
        return {key: record for key, (_, record) in latest.items() if key not in built}
