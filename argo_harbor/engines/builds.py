"""Builds the bases of a run's images on this machine, each once, before the trials that need it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from argo_harbor.engines import events
from argo_harbor.engines.base_builder import BaseBuilder
from argo_harbor.model.build import BuildRecord
from argo_harbor.model.plan import ImagePlan, TaskPlan
from argo_harbor.store import layout

AT_ONCE = 2


class Builds:
    """The images of one run. Ask `failure` for a task before its first trial; a base is built once."""

    def __init__(
        self, parts: Iterable[TaskPlan], *, run: str, builder: BaseBuilder, progress: events.Progress
    ) -> None:
        self._run = run
        self._builder = builder
        self._progress = progress
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._users: dict[str, list[TaskPlan]] = {}
        self._building: dict[str, asyncio.Task[str]] = {}
        for part in parts:
            for key in builder.maker.needed(part):
                self._users.setdefault(key, []).append(part)

    async def failure(self, part: TaskPlan) -> str:
        """Build what the task needs. Returns why it cannot run, empty when everything is ready.

        Build records are of images that are built: where another one is not ready, the trial finds the
        reason itself and records it.
        """
        for key, image in self._builder.maker.needed(part).items():
            if key not in self._building:
                self._building[key] = asyncio.create_task(self._build(key, part, image))
            # A shield, because other tasks may be waiting for the same base.
            failed = await asyncio.shield(self._building[key])
            if failed and image.key:
                return failed
        return ""

    async def cancel(self) -> None:
        """End what is still building."""
        for task in self._building.values():
            task.cancel()
        await asyncio.gather(*self._building.values(), return_exceptions=True)

    async def _build(self, key: str, part: TaskPlan, image: ImagePlan) -> str:
        async with self._slots:
            names = tuple(user.name for user in self._users[key])
            self._progress(events.BuildStarted(key, names))
            record = await self._builder.build(key, image, part.digest)
            if image.key:
                self._record(record)
            complaint = "" if record.ok else f"{record.step}: {record.message}"
            self._progress(events.BuildFinished(key, names, record.seconds, complaint))
            return record.message

    def _record(self, record: BuildRecord) -> None:
        key = layout.build_record(self._run, record.image_key, "local")
        self._builder.store.put(key, record.canonical())
