"""What the sandboxes of a local run start from: images, or a preview of this machine's own programs.

One choice for a whole run, because results on different ground cannot be compared. Images need a builder that
answers and has, or gets, every image that the tasks start from.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from argo_harbor.errors import PlatformError
from argo_harbor.model.plan import ImagePlan, TaskPlan
from argo_harbor.sandbox.build import ensure_base
from argo_harbor.sandbox.builder import (
    HASTY_SECONDS,
    PATIENT_SECONDS,
    Builder,
    ImageFacts,
    NoBuilder,
    find_builder,
)
from argo_harbor.sandbox.images import Recipe, prebuilt_key, prepare_built, prepare_prebuilt
from argo_harbor.sandbox.preview import prepare_preview
from argo_harbor.sandbox.toolbox import prepare_image_ground

BaseKind = Literal["preview", "image"]
REASON_CHARS = 240
"""Of what builders complain about; registries can be wordy."""
SCRATCH = "scratch"
"""FROM scratch names no image."""


@dataclass(frozen=True, slots=True)
class ChosenBase:
    kind: BaseKind
    reason: str = ""
    """Why, unless it was asked for."""
    builder: Builder | None = None
    """Of images."""
    images: Mapping[str, ImageFacts] = field(default_factory=dict)
    """What the builder knows of the images that tasks name, as FROM or as their own."""


def choose_base(images: Iterable[ImagePlan], wish: Literal["auto", "image", "preview"]) -> ChosenBase:
    """Ask the builders of this machine for what these images start from; may fetch it, for seconds when the
    preview will do as well.

    Raises: PlatformError `sandbox_unavailable` when images were asked for and cannot be had.
    """
    if wish == "preview":
        return ChosenBase("preview")
    wanted = {name for image in images for name in _starts_from(image)}
    try:
        found = find_builder(wanted, seconds=PATIENT_SECONDS if wish == "image" else HASTY_SECONDS)
    except NoBuilder as error:
        if wish == "auto":
            return ChosenBase("preview", textwrap.shorten(error.brief, REASON_CHARS, placeholder=" …"))
        raise PlatformError(
            "sandbox_unavailable",
            f"images cannot be had on this machine: {error}",
            "repair the builder, or run on the preview with --base preview",
        ) from error
    reason = "" if wish == "image" else f"{found.builder.name} has all images"
    return ChosenBase("image", reason, found.builder, found.images)


def all_images(part: TaskPlan) -> list[ImagePlan]:
    """The images of a task, each once."""
    return list({image.key or image.reference: image for image in part.sides.values()}.values())


def images_of(parts: Iterable[TaskPlan]) -> list[ImagePlan]:
    """The images of all tasks, repeats included."""
    return [image for part in parts for image in all_images(part)]


def _starts_from(image: ImagePlan) -> Iterator[str]:
    if image.key:
        yield from (name for name in image.bases if name != SCRATCH)
    else:
        yield image.reference


class BaseMaker(Protocol):
    """Makes the bases of one run in its scratch folder."""

    def needed(self, part: TaskPlan) -> dict[str, ImagePlan]:
        """What must be made before the task's trials, by a key that names it in the run."""
        ...

    async def make(self, image: ImagePlan, task_dir: Path) -> None:
        """Make one of them. `task_dir` is the unpacked task.

        Raises: ImageBuildFailed and other SandboxErrors, Refused, OSError.
        """
        ...


class PreviewMaker:
    """Carries out Dockerfiles on the preview; prebuilt images need nothing."""

    def __init__(self, scratch: Path) -> None:
        """Raises: PlatformError `sandbox_unavailable`."""
        self._scratch = scratch
        self._preview = prepare_preview(scratch)

    def needed(self, part: TaskPlan) -> dict[str, ImagePlan]:
        return {image.key: image for image in all_images(part) if image.key}

    async def make(self, image: ImagePlan, task_dir: Path) -> None:
        await ensure_base(
            self._scratch,
            preview=self._preview,
            key=image.key,
            context=task_dir / image.context,
            dockerfile=image.dockerfile,
            build_args=dict(image.arguments),
        )


class ImageMaker:
    """Builds and lays out images."""

    def __init__(self, scratch: Path, builder: Builder) -> None:
        """Raises: PlatformError `sandbox_unavailable`."""
        self._scratch = scratch
        self._builder = builder
        prepare_image_ground(scratch)

    def needed(self, part: TaskPlan) -> dict[str, ImagePlan]:
        return {image.key or prebuilt_key(image.reference): image for image in all_images(part)}

    async def make(self, image: ImagePlan, task_dir: Path) -> None:
        if not image.key:
            await prepare_prebuilt(self._scratch, builder=self._builder, reference=image.reference)
            return
        recipe = Recipe(task_dir / image.context, image.dockerfile, image.target, image.arguments)
        await prepare_built(self._scratch, builder=self._builder, key=image.key, recipe=recipe)


def base_maker(chosen: ChosenBase, scratch: Path) -> BaseMaker:
    """Raises: PlatformError `sandbox_unavailable`."""
    return PreviewMaker(scratch) if chosen.builder is None else ImageMaker(scratch, chosen.builder)
