"""Builds the bases of a run's images on this machine, each once, before the trials that need it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from argo_harbor.engines import events
from argo_harbor.engines.bases import BaseMaker
from argo_harbor.errors import HarborError
from argo_harbor.model.build import BuildRecord
from argo_harbor.model.plan import ImagePlan, TaskPlan
from argo_harbor.sandbox.base import ImageBuildFailed, SandboxError
from argo_harbor.sandbox.scratch import remove_scratch
from argo_harbor.sources.fetch import fetch_task
from argo_harbor.store import layout
from argo_harbor.store.base import Store

AT_ONCE = 2
MESSAGE_CHARS = 8000


class Builds:
    """The images of one run. Ask `failure` for a task before its first trial; a base is built once."""

    def __init__(
        self,
        parts: Iterable[TaskPlan],
        *,
        run: str,
        store: Store,
        scratch: Path,
        maker: BaseMaker,
        progress: events.Progress,
        stamp: Callable[[], str],
    ) -> None:
        self._run = run
        self._store = store
        self._scratch = scratch
        self._maker = maker
        self._progress = progress
        self._stamp = stamp
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._users: dict[str, list[TaskPlan]] = {}
        self._building: dict[str, asyncio.Task[str]] = {}
        for part in parts:
            for key in maker.needed(part):
                self._users.setdefault(key, []).append(part)

    async def failure(self, part: TaskPlan) -> str:
        """Build what the task needs. Returns why it cannot run, empty when everything is ready.

        Build records are of images that are built: where another one is not ready, the trial finds the
        reason itself and records it.
        """
        for key, image in self._maker.needed(part).items():
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
            began = time.monotonic()
            step, failed = await self._try(key, part, image)
            if image.key:
                self._record(image, step, failed)
            complaint = f"{step}: {failed}" if failed else ""
            self._progress(events.BuildFinished(key, names, time.monotonic() - began, complaint))
            return failed

    async def _try(self, key: str, part: TaskPlan, image: ImagePlan) -> tuple[str, str]:
        folder = self._scratch / f"context-{key}"
        try:
            await asyncio.to_thread(fetch_task, self._store, part.digest, folder)
            await self._maker.make(image, folder)
        except ImageBuildFailed as error:
            return error.step, error.log.strip() or "no output"
        except (SandboxError, HarborError, OSError) as error:
            return "", str(error) or type(error).__name__
        finally:
            await asyncio.shield(asyncio.to_thread(remove_scratch, folder))
        return "", ""

    def _record(self, image: ImagePlan, step: str, failed: str) -> None:
        record = BuildRecord(
            image_key=image.key,
            ok=not failed,
            reference=image.reference,
            step=step,
            message=failed[-MESSAGE_CHARS:],
            finished_at=self._stamp(),
        )
        self._store.put(layout.build_record(self._run, image.key, "local"), record.canonical())
