"""Makes one base on this machine from the files of a published task, and records what came of it.

Used by runs, before the trials that need the base, and by `tasksets build-images`, which only wants to know
whether it can be made: bases live as long as the scratch folder that they are made in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from argo_harbor.bundle.images import record_image
from argo_harbor.engines.bases import BaseMaker, ChosenBase
from argo_harbor.errors import HarborError
from argo_harbor.model.build import BuildRecord
from argo_harbor.model.plan import ImagePlan
from argo_harbor.sandbox.base import ImageBuildFailed, SandboxError
from argo_harbor.sandbox.scratch import remove_scratch
from argo_harbor.sources.fetch import fetch_task
from argo_harbor.store.base import Store

MESSAGE_CHARS = 8000


@dataclass(frozen=True, slots=True)
class BaseBuilder:
    """What all builds in one scratch folder share."""

    store: Store
    scratch: Path
    maker: BaseMaker
    base: ChosenBase
    stamp: Callable[[], str]

    async def build(self, key: str, image: ImagePlan, digest: str) -> BuildRecord:
        """Make the base `key` of an image. `digest` is that of the task whose files it is made of.

        What a prebuilt image needs is recorded nowhere: it has no image key.
        """
        began = time.monotonic()
        step, message, code = await self._try(key, image, digest)
        record = BuildRecord(
            image_key=image.key or key,
            ok=not message,
            reference=image.reference,
            step=step,
            message=message[-MESSAGE_CHARS:],
            code=code,
            bases=self._bases(image),
            seconds=round(time.monotonic() - began, 3),
            finished_at=self.stamp(),
            base=self.base.kind,
        )
        if image.key:
            record_image(self.store, record)
        return record

    async def _try(self, key: str, image: ImagePlan, digest: str) -> tuple[str, str, str]:
        """Failing step, message and code; all empty when the base is ready."""
        folder = self.scratch / f"context-{key}"
        try:
            await asyncio.to_thread(fetch_task, self.store, digest, folder)
            await self.maker.make(image, folder)
        except ImageBuildFailed as error:
            return error.step, error.log.strip() or "no output", ""
        except HarborError as error:
            return "", error.message, error.code
        except (SandboxError, OSError) as error:
            return "", str(error) or type(error).__name__, ""
        finally:
            await asyncio.shield(asyncio.to_thread(remove_scratch, folder))
        return "", "", ""

    def _bases(self, image: ImagePlan) -> dict[str, str]:
        known = self.base.images
        return {name: known[name].digest for name in image.bases if name in known and known[name].digest}
