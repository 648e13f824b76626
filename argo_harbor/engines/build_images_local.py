"""Builds the images of a taskset on this machine, to find out whether they can be built.

What a build leaves is removed: each run makes its bases anew, in a scratch folder of its own. The records
stay, and `runs submit --taskset` goes by them.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from argo_harbor.bundle.images import image_states
from argo_harbor.engines import events, scratch
from argo_harbor.engines.base_builder import BaseBuilder
from argo_harbor.engines.bases import ChosenBase, base_maker
from argo_harbor.engines.build_images import ImageLine, lines_of
from argo_harbor.engines.local_checks import image_findings
from argo_harbor.engines.marks import now
from argo_harbor.errors import Finding, PlatformError, Refused
from argo_harbor.model.build_plan import BuildPlan
from argo_harbor.model.plan import ImagePlan
from argo_harbor.model.taskset import Taskset
from argo_harbor.planning.images import mirrored
from argo_harbor.sandbox.host import sandbox_available
from argo_harbor.store.directory import DirectoryStore


@dataclass(frozen=True, slots=True)
class LocalBuilding:
    """Builds that have ended. See `Building`."""

    plan: BuildPlan
    store: DirectoryStore
    base: ChosenBase
    started: Sequence[str] = ()
    joined: Sequence[str] = ()

    def look(self) -> list[ImageLine]:
        keys = [planned.image.key for planned in self.plan.images]
        return lines_of(self.plan, image_states(self.store, keys, base=self.base.kind))


def check_images(plan: BuildPlan, taskset: Taskset, choose: Callable[[], ChosenBase]) -> ChosenBase:
    """What the images will be built on.

    Raises: Refused with every finding about the Dockerfiles; PlatformError `sandbox_unavailable`.
    """
    base = choose()
    tasks = {task.name: task for task in taskset.tasks}
    findings: list[Finding] = []
    for planned in plan.images:
        found = list(image_findings(planned.image, tasks[planned.task], base.kind))
        findings += [replace(finding, task=task) for task in planned.tasks for finding in found]
    if findings:
        raise Refused.of(findings)
    unavailable = sandbox_available(None)
    if unavailable is not None:
        raise PlatformError(unavailable.code, unavailable.message, unavailable.hint)
    return base


def start_images(plan: BuildPlan, taskset: Taskset) -> list[ImagePlan]:
    """What a run of these tasks would start from: the images of the plan, and those that need no build."""
    sources = [
        source
        for task in taskset.tasks
        for source in (task.agent_image, task.verifier_image, *task.step_verifier_images)
        if source is not None and source.kind == "prebuilt"
    ]
    mirror = plan.platform.base_image_mirror
    ready = dict.fromkeys(mirrored(source.reference, mirror) for source in sources)
    prebuilt = [ImagePlan(kind="prebuilt", reference=reference) for reference in ready]
    return [*(planned.image for planned in plan.images), *prebuilt]


def build_here(
    plan: BuildPlan,
    store: DirectoryStore,
    *,
    base: ChosenBase,
    preferred: Path,
    progress: events.Progress,
) -> LocalBuilding:
    """Build every image that is not ready, the plan's cap at once, and return when all have ended.

    `preferred` is where scratch folders lie. Raises: PlatformError; KeyboardInterrupt after SIGINT, when
    what was building has ended.
    """
    building = LocalBuilding(plan, store, base)
    wanted = frozenset(line.planned.image.key for line in building.look() if line.word != "ready")
    if wanted:
        scratch.sweep(preferred)
        with scratch.run_scratch(f"run-builds-{secrets.token_hex(4)}", preferred) as folder:
            with scratch.writing(folder):
                builder = BaseBuilder(store, folder, base_maker(base, folder), base, now)
            asyncio.run(_build_all(plan.only(wanted), builder, progress))
    return building


async def _build_all(plan: BuildPlan, builder: BaseBuilder, progress: events.Progress) -> None:
    slots = asyncio.Semaphore(plan.cap)

    async def one(place: int) -> None:
        planned = plan.images[place]
        async with slots:
            key = planned.image.key
            progress(events.BuildStarted(key, planned.tasks))
            record = await builder.build(key, planned.image, planned.digest)
            complaint = "" if record.ok else f"{record.step}: {record.message}"
            progress(events.BuildFinished(key, planned.tasks, record.seconds, complaint))

    async with asyncio.TaskGroup() as group:
        for place in range(len(plan.images)):
            group.create_task(one(place))
