"""Makes the sandboxes of a trial on this machine: on the preview or on images, one folder each."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

from argo_harbor.model.plan import TaskPlan
from argo_harbor.model.record import RefusedHost
from argo_harbor.model.runner import SandboxSettings
from argo_harbor.sandbox.base import Sandbox
from argo_harbor.sandbox.bubblewrap import BubblewrapSandbox
from argo_harbor.sandbox.build import ensure_base
from argo_harbor.sandbox.ground import Ground
from argo_harbor.sandbox.image import Base
from argo_harbor.sandbox.images import find_image, prebuilt_key
from argo_harbor.sandbox.preview import Preview, prepare_preview
from argo_harbor.sandbox.toolbox import prepare_image_ground


class LocalSandboxes:
    """See `SandboxFactory`."""

    def __init__(self, settings: SandboxSettings, part: TaskPlan, *, task_dir: Path, work_dir: Path) -> None:
        self._settings = settings
        self._part = part
        self._task_dir = task_dir
        self._work_dir = work_dir
        self._made = 0
        self._from: list[str] = []
        self._digest = ""

    @property
    def ignored_from(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._from))

    @property
    def image_digest(self) -> str:
        return self._digest

    @property
    def refused(self) -> dict[str, tuple[RefusedHost, ...]]:
        """Nothing is fenced by host here."""
        return {}

    async def make(self, context: Path | None, name: str, image: str) -> Sandbox:
        scratch = Path(self._settings.run_scratch)
        ground: Ground
        if self._settings.base == "image":
            ground = await asyncio.to_thread(prepare_image_ground, scratch)
            base = find_image(scratch, self._key(context) if context else prebuilt_key(image))
        else:
            ground = preview = await asyncio.to_thread(prepare_preview, scratch)
            base = await self._preview_base(scratch, preview, context, image)
        if base.from_image:
            self._from.append(base.from_image)
        self._digest = self._digest or base.digest
        self._made += 1
        folder = self._work_dir / f"sandbox-{self._made}"
        return BubblewrapSandbox(folder, ground=ground, base=base, network=self._settings.network)

    async def _preview_base(self, scratch: Path, preview: Preview, context: Path | None, image: str) -> Base:
        if context is None:
            return Base.bare(image)
        return await ensure_base(scratch, preview=preview, key=self._key(context), context=context)

    def _key(self, context: Path) -> str:
        """The plan's image key. An image that it does not name gets one of our own."""
        relative = context.relative_to(self._task_dir).as_posix()
        images = self._part.images
        steps = [step.verifier_image for step in self._part.steps]
        for planned in (images.agent, images.verifier, *steps):
            if planned is not None and planned.context == relative and planned.key:
                return planned.key
        return hashlib.sha256(f"{self._part.digest} {relative}".encode()).hexdigest()
