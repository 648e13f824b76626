"""Builds the bases of a run's images on this machine, each once, before the trials that need it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from argo_harbor.engines import events
from argo_harbor.errors import HarborError
from argo_harbor.model.build import BuildRecord
from argo_harbor.model.plan import ImagePlan, TaskPlan
from argo_harbor.sandbox.base import ImageBuildFailed, SandboxError
from argo_harbor.sandbox.build import ensure_base
from argo_harbor.sandbox.preview import Preview
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
        preview: Preview,
        progress: events.Progress,
        stamp: Callable[[], str],
    ) -> None:
        self._run = run
        self._store = store
        self._scratch = scratch
        self._preview = preview
        self._progress = progress
        self._stamp = stamp
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._users: dict[str, list[TaskPlan]] = {}
        self._building: dict[str, asyncio.Task[str]] = {}
        for part in parts:
            for image in images_of(part):
                self._users.setdefault(image.key, []).append(part)

    async def failure(self, part: TaskPlan) -> str:
        """Build what the task needs. Returns why it cannot run, empty when everything is ready."""
        for image in images_of(part):
            if image.key not in self._building:
                self._building[image.key] = asyncio.create_task(self._build(part, image))
            # A shield, because other tasks may be waiting for the same base.
            failed = await asyncio.shield(self._building[image.key])
            if failed:
                return failed
        return ""

    async def cancel(self) -> None:
        """End what is still building."""
        for task in self._building.values():
            task.cancel()
        await asyncio.gather(*self._building.values(), return_exceptions=True)

    async def _build(self, part: TaskPlan, image: ImagePlan) -> str:
        async with self._slots:
            names = tuple(user.name for user in self._users[image.key])
            self._progress(events.BuildStarted(image.key, names))
            began = time.monotonic()
            step, failed = await self._try(part, image)
            self._record(image, step, failed)
            self._progress(
                events.BuildFinished(
                    image.key, names, time.monotonic() - began, f"{step}: {failed}" if failed else ""
                )
            )
            return failed

    async def _try(self, part: TaskPlan, image: ImagePlan) -> tuple[str, str]:
        folder = self._scratch / f"context-{image.key}"
        try:
            await asyncio.to_thread(fetch_task, self._store, part.digest, folder)
            await ensure_base(
                self._scratch, preview=self._preview, key=image.key, context=folder / image.context
            )
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


def images_of(part: TaskPlan) -> list[ImagePlan]:
    """The images of a task that are built, each once."""
    images = (part.images.agent, part.images.verifier, *(step.verifier_image for step in part.steps))
    built = {image.key: image for image in images if image is not None and image.key}
    return list(built.values())
