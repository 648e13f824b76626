"""`argo-harbor tasksets build-images`: build what a published taskset's tasks need, before any run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from argo_harbor.cli import options, output
from argo_harbor.cli.options import TasksetArgument
from argo_harbor.cli.place import choose, command
from argo_harbor.engines.place import Place
from argo_harbor.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK

if TYPE_CHECKING:
    from argo_harbor.engines.base import Engine
    from argo_harbor.engines.build_images import Building, ImageLine
    from argo_harbor.engines.events import Event
    from argo_harbor.engines.where import Chosen
    from argo_harbor.model.build import BuildInputs
    from argo_harbor.model.build_plan import BuildPlan
    from argo_harbor.model.documents import BuildImagesDocument, ImageInfo, Item
    from argo_harbor.planning.report import Refusals

LAST_LINES = 10
"""Of the output of a build that failed; `--json` has what was kept of it."""


def build_images(
    ref: TasksetArgument,
    place: Place,
    tasks: options.Tasks = None,
    skip_refused: options.SkipRefused = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until every image is ready or failed; exit 1 if one failed.")
    ] = False,
    max_concurrent: Annotated[
        int | None,
        typer.Option("--max-concurrent", metavar="N", min=1, max=1000, help="Builds at once. Default: 8."),
    ] = None,
    build_args: options.BuildArg = None,
    build_secrets: options.BuildSecret = None,
    base: options.Base = "auto",
    as_json: options.Json = False,
) -> int:
    """Build the images of a published taskset: what is not ready, and what failed before."""
    from argo_harbor.cli.build_inputs import build_inputs, build_line, selected
    from argo_harbor.cli.refused import without_refused
    from argo_harbor.planning.builds import BUILDS_AT_ONCE, plan_builds
    from argo_harbor.sources.stored import StoredSource

    inputs = build_inputs(build_args or (), build_secrets or ())
    chosen = choose(place)
    engine, site = chosen.engine, chosen.site
    taskset = StoredSource(ref, engine.store).load(tasks)
    output.warnings(taskset.warnings)
    profile = site.profile()

    def planned(refused: Refusals) -> BuildPlan:
        return plan_builds(
            taskset,
            platform=site.platform,
            profile=profile,
            inputs=inputs,
            cap=max_concurrent or BUILDS_AT_ONCE,
            skip_refused=skip_refused,
            refused=refused,
        )

    again = build_line(place, taskset.ref, tasks=tasks, inputs=inputs, skip_refused=skip_refused, base=base)
    try:
        plan, building = without_refused(
            planned,
            lambda plan: engine.build_images(plan, taskset, base=base, progress=_told),
            skip=skip_refused,
        )
        _say_started(building, plan)
        lines = _follow(building) if wait else building.look()
    except KeyboardInterrupt:
        output.note(f"interrupted{'; builds go on' if engine.name == 'argo' else ''}")
        output.note(f"Look again: {again}")
        return EXIT_INTERRUPTED
    settled = all(line.settled for line in lines)
    failed = settled and any(line.word == "failed" for line in lines)
    if as_json:
        output.document(_document(plan, engine, building, lines))
    else:
        _print(lines, skipped_of(plan))
        if failed or not settled:
            output.line(f"{'Try the failed ones again' if failed else 'Look again'}: {again}")
        elif lines:
            words = ("runs", "submit", "--taskset", *selected(taskset.ref, tasks, inputs, skip_refused))
            output.line(f"Run it: {command(place, *words)}")
    return EXIT_FAILED if failed else EXIT_OK


def _document(
    plan: BuildPlan, engine: Engine, building: Building, lines: Sequence[ImageLine]
) -> BuildImagesDocument:
    from argo_harbor.model.documents import BuildImagesDocument

    return BuildImagesDocument(
        taskset_ref=plan.taskset,
        engine=engine.name,
        workflows=(*building.joined, *building.started),
        settled=all(line.settled for line in lines),
        images=tuple(map(document_of, lines)),
        skipped=skipped_of(plan),
    )


def _print(lines: Sequence[ImageLine], skipped: Sequence[Item]) -> None:
    from argo_harbor.cli.build_watch import counted

    images = [document_of(line) for line in lines]
    print_images(images, skipped)
    for image in images:
        _print_failure(image)
    if lines:
        output.line(f"\n{counted(lines)}")


def images_of(
    ref: str, tasks: Sequence[int], chosen: Chosen, inputs: BuildInputs
) -> tuple[tuple[ImageInfo, ...], tuple[Item, ...]]:
    """Where the images of some tasks of a published taskset stand, by the tasks' indexes, and which of the
    tasks have none because they are refused."""
    from argo_harbor.planning.builds import plan_builds
    from argo_harbor.sources.stored import StoredSource

    taskset = StoredSource(ref, chosen.engine.store).load(tasks)
    site = chosen.site
    plan = plan_builds(
        taskset, platform=site.platform, profile=site.profile(), inputs=inputs, skip_refused=True
    )
    return tuple(map(document_of, chosen.engine.look_at_images(plan))), skipped_of(plan)


def skipped_of(plan: BuildPlan) -> tuple[Item, ...]:
    from argo_harbor.model.documents import Item

    return tuple(Item(task=name, code=why.code, message=why.message) for name, why in plan.skipped.items())


def document_of(line: ImageLine) -> ImageInfo:
    from argo_harbor.engines.build_images import reason
    from argo_harbor.model.documents import ImageInfo

    image, record = line.planned.image, line.record
    failed = line.word == "failed" or (line.word == "missing" and record is not None and not record.ok)
    return ImageInfo(
        key=image.key,
        reference=image.reference,
        digest=record.digest if record is not None and record.ok else "",
        state=line.word,
        detail=line.detail,
        tasks=line.planned.tasks,
        code=reason(record)[0] if failed else "",
        step=record.step if failed and record else "",
        message=record.message if failed and record else "",
        bases=dict(record.bases) if record else {},
        seconds=record.seconds if record else 0.0,
    )


def print_images(images: Sequence[ImageInfo], skipped: Sequence[Item]) -> None:
    """One line an image: what it is, who needs it, where it is; and one for each task that was left out."""
    if images:
        _print_table(images)
    else:
        output.line("no image of these tasks needs to be built")
    for item in skipped:
        output.line(f"{item.task}: skipped: {item.code}: {item.message}")


def _print_table(images: Sequence[ImageInfo]) -> None:
    from argo_harbor.cli.show import brief

    output.table(
        ["Image", "Tasks", "State", "Detail"],
        (
            [
                image.key[:12],
                output.some(image.tasks),
                image.state,
                brief(image.detail or (f"{image.code}: {image.step}" if image.code else "")),
            ]
            for image in images
        ),
    )


def _print_failure(image: ImageInfo) -> None:
    if image.state != "failed":
        return
    output.line(f"\n{output.some(image.tasks)}: {image.code}: {image.step or 'the build as a whole'}")
    for text in image.message.strip().splitlines()[-LAST_LINES:]:
        output.line(f"  {text}")


def _say_started(building: Building, plan: BuildPlan) -> None:
    for name in building.joined:
        output.note(f"{name} is building images of this taskset already")
    for name in building.started:
        output.note(f"Started {name}: {plan.cap} at once")


def _told(event: Event) -> None:
    """Builds on this machine, as they begin and end."""
    from argo_harbor.engines import events

    match event:
        case events.BuildStarted():
            output.note(f"building for {output.some(event.tasks)}")
        case events.BuildFinished():
            verdict = "failed" if event.error else "ready"
            output.note(f"{output.some(event.tasks)}: {verdict} in {output.duration(event.seconds)}")


def _follow(building: Building) -> list[ImageLine]:
    """Look until every image is settled. A store or cluster that does not answer is told and waited for."""
    from argo_harbor.cli.build_watch import watcher
    from argo_harbor.cli.looking import look_until

    with watcher(sys.stderr.isatty()) as told:
        return look_until(
            building.look,
            ended=lambda lines: all(line.settled for line in lines),
            show=told.show,
            trouble=lambda error: told.trouble(f"{error.code}: {error.message}; looking again"),
            hopeless=lambda error: error.code == "platform_refused",
        )
