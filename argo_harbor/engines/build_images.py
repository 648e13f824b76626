"""Building the images of a published taskset before any run, on whatever engine: what is asked, where it is.

The command line starts builds by `Engine.build_images` and looks at what comes back until every image is
settled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from argo_harbor.bundle.images import ImageState
from argo_harbor.errors import Finding, Refused
from argo_harbor.model.build import BuildRecord
from argo_harbor.model.build_plan import BuildPlan, PlannedImage
from argo_harbor.model.plan import RunPlan

Word = Literal["ready", "failed", "building", "pending", "missing"]
SETTLED = frozenset({"ready", "failed"})
SHOWN_TASKS = 5
"""Tasks that the message of a refusal names; its items name all."""


@dataclass(frozen=True, slots=True)
class ImageLine:
    """Where one image is."""

    planned: PlannedImage
    word: Word
    """`missing`: nobody builds it. `pending`: somebody will, and has not begun."""
    detail: str = ""
    """What it waits for, or why there is none when no record says so."""
    record: BuildRecord | None = None
    """Of the build that was the last to end."""

    @property
    def settled(self) -> bool:
        return self.word in SETTLED


class Building(Protocol):
    """Builds of one taskset's images."""

    @property
    def started(self) -> Sequence[str]:
        """Names of the workflows that were created for it; none on one machine."""
        ...

    @property
    def joined(self) -> Sequence[str]:
        """Names of workflows that build some of the images already."""
        ...

    def look(self) -> list[ImageLine]:
        """Where every image of the plan is now, in its order. Raises: PlatformError."""
        ...


def lines_of(plan: BuildPlan, states: Mapping[str, ImageState]) -> list[ImageLine]:
    """The images by what is known of them, when nobody builds any."""
    found = ((planned, states[planned.image.key]) for planned in plan.images)
    return [ImageLine(planned, state.word, record=state.record) for planned, state in found]


def refuse_unbuilt(plan: RunPlan, states: Mapping[str, ImageState], hint: str) -> None:
    """Hold a plan against the states of its images by key. `hint` is the command that builds them.

    Raises: Refused `image_not_built` with one item for each image of a task that is not ready, under the code
    of the build that failed.
    """
    findings = list(_unbuilt(plan, states, hint))
    if not findings:
        return
    first: dict[str, Finding] = {}
    for finding in findings:
        first.setdefault(finding.task, finding)
    shown = [f"{task}: {finding.code}: {finding.message}" for task, finding in first.items()][:SHOWN_TASKS]
    more = f"; and {len(first) - SHOWN_TASKS} more" if len(first) > SHOWN_TASKS else ""
    named = "; ".join(shown)
    raise Refused("image_not_built", f"tasks without images: {named}{more}", hint, findings)


def _unbuilt(plan: RunPlan, states: Mapping[str, ImageState], hint: str) -> Iterable[Finding]:
    for part in plan.parts:
        for image in {image.key: image for image in part.sides.values() if image.key}.values():
            state = states[image.key]
            if state.word != "ready":
                code, message = reason(state.record)
                file = f"{part.folder}/{image.context}/{image.dockerfile}"
                yield Finding(code, message, hint, part.name, file)


def reason(record: BuildRecord | None) -> tuple[str, str]:
    """Code and message of an image that is not ready; the record is of its last build, if any."""
    if record is None or record.ok:
        return "image_not_built", "its image was never built here, or is gone"
    last = record.message.strip().rpartition("\n")[2]
    said = ": ".join(part for part in (record.step, last) if part)
    return record.code or "image_build_failed", said or "its build failed without a word"
