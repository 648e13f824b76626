"""`argo-harbor tasksets …`: bring suites into a store, and see which are there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from argo_harbor.cli import options, output
from argo_harbor.cli.build_images import build_images
from argo_harbor.cli.flags import spread
from argo_harbor.cli.grouped import GroupedOptions
from argo_harbor.cli.options import NewSource
from argo_harbor.cli.place import choose, command
from argo_harbor.engines.place import Place

if TYPE_CHECKING:
    from argo_harbor.model.documents import TasksetDocument, TasksetLine
    from argo_harbor.model.taskset import Taskset
    from argo_harbor.sources.inventory import Inventory
    from argo_harbor.sources.publish import PublishedTaskset

_MIB = 1 << 20


def register(app: typer.Typer) -> None:
    """Add the verbs to the `tasksets` group."""
    for panel, verb in (
        ("Publish", create),
        ("Publish", build_images),
        ("Look", list_tasksets),
        ("Look", show),
    ):
        name = verb.__name__.removesuffix("_tasksets").replace("_", "-")
        app.command(name, cls=GroupedOptions, rich_help_panel=panel)(spread(verb))


def create(
    named: NewSource,
    place: Place,
    tasks: options.Tasks = None,
    list_tasks: options.ListTasks = False,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", help="Read back what the store holds already, and replace what is damaged there."
        ),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Publish a suite: what the store lacks only. The last line is the taskset's ref."""
    from argo_harbor.cli.published import task_line
    from argo_harbor.cli.request import open_source
    from argo_harbor.cli.suite import print_tasks
    from argo_harbor.sources.publish import publish_taskset

    source = open_source(named)
    if list_tasks:
        print_tasks(source.list(tasks), as_json=as_json)
        return
    store = choose(place).engine.store
    taskset = source.load(tasks)
    output.note(f"publishing {len(taskset)} of {taskset.total} tasks to {store.name}")
    if as_json:
        _print_document(taskset, publish_taskset(taskset, store, verify=verify))
        return
    output.warnings(taskset.warnings)
    done = publish_taskset(taskset, store, verify=verify, told=lambda task: output.line(task_line(task)))
    _print_created(taskset, done)


def _print_created(taskset: Taskset, done: PublishedTaskset) -> None:
    from argo_harbor.cli.published import taskset_line

    output.line(taskset_line(done))
    if taskset.origin is not None:
        output.line(f"Intake label: --intake-dataset {taskset.dataset_label}")
    output.line(taskset.ref)


def _print_document(taskset: Taskset, done: PublishedTaskset) -> None:
    from argo_harbor.model.documents import Item, PublishedTaskLine, TasksetCreateDocument

    output.document(
        TasksetCreateDocument(
            taskset_ref=taskset.ref,
            name=taskset.name,
            digest=taskset.digest,
            total=taskset.total,
            state="published" if done.new else "unchanged",
            tasks=tuple(
                PublishedTaskLine(
                    index=task.index,
                    name=task.name,
                    digest=task.digest,
                    state="published" if task.new else "unchanged",
                )
                for task in done.tasks
            ),
            published=done.added,
            unchanged=len(done.tasks) - done.added,
            source=taskset.origin.pinned if taskset.origin else "",
            intake_dataset=taskset.dataset_label,
            warnings=Item.each(taskset.warnings),
        )
    )


def list_tasksets(place: Place, as_json: options.Json = False) -> None:
    """List published tasksets, the newest first."""
    from argo_harbor.cli.published import short
    from argo_harbor.model.documents import TasksetsDocument
    from argo_harbor.sources import inventory

    store = choose(place).engine.store
    lines = [_line(found) for found in inventory.list_tasksets(store)]
    if as_json:
        output.document(TasksetsDocument(tasksets=tuple(lines)))
        return
    if not lines:
        output.note(f"no taskset in {store.name}; argo-harbor tasksets create publishes one")
        return
    output.table(
        ["Taskset", "Tasks", "In store", "Published", "Source"],
        (
            [
                short(line.taskset_ref),
                "broken" if line.total is None else str(line.total),
                "-" if line.total is None else str(line.in_store),
                output.when(line.published_at),
                line.source or "-",
            ]
            for line in lines
        ),
        right=["Tasks", "In store"],
    )
    for line in lines:
        if line.problem:
            output.note(f"{short(line.taskset_ref)}: {line.problem}")
            output.note(f"hint: {line.hint}")


def show(
    ref: options.TasksetArgument,
    place: Place,
    images: Annotated[
        bool,
        typer.Option("--images", help="Also read its tasks, and say where the image of each stands."),
    ] = False,
    build_args: options.BuildArg = None,
    build_secrets: options.BuildSecret = None,
    as_json: options.Json = False,
) -> None:
    """Show a published taskset and each of its tasks."""
    from argo_harbor.cli.build_images import images_of
    from argo_harbor.cli.build_inputs import build_inputs
    from argo_harbor.model.documents import StoredTaskLine, TasksetDocument
    from argo_harbor.sources.inventory import show_taskset

    inputs = build_inputs(build_args or (), build_secrets or ())
    chosen = choose(place)
    found = show_taskset(ref, chosen.engine.store)
    members = found.manifest.members if found.manifest else ()
    tasks = tuple(
        StoredTaskLine(
            index=index,
            name=member.name,
            digest=member.digest,
            in_store=member.digest in found.sizes,
            bytes=found.sizes.get(member.digest),
        )
        for index, member in enumerate(members)
    )
    stored = [task.index for task in tasks if task.in_store]
    built, skipped = images_of(found.ref, stored, chosen, inputs) if images and stored else ((), ())
    document = TasksetDocument(**_line(found).as_data(), tasks=tasks, images=built, skipped=skipped)
    if as_json:
        output.document(document)
        return
    _print_taskset(document, place)


def _print_taskset(shown: TasksetDocument, place: Place) -> None:
    from argo_harbor.cli.published import SHOWN_DIGITS

    output.table(
        ["#", "Task", "Digest", "In store"],
        (
            [
                str(task.index),
                task.name,
                task.digest[:SHOWN_DIGITS],
                "-" if task.bytes is None else output.size(task.bytes / _MIB),
            ]
            for task in shown.tasks
        ),
        right=["#", "In store"],
    )
    output.line(
        f"\n{shown.in_store} of {shown.total} tasks in the store, published {output.when(shown.published_at)}"
    )
    if shown.images or shown.skipped:
        from argo_harbor.cli.build_images import print_images

        output.line()
        print_images(shown.images, shown.skipped)
        output.line()
    if shown.source:
        output.line(f"Source: {shown.source}")
    output.line(f"Intake label: --intake-dataset {shown.intake_dataset}")
    output.line(f"Run it: {command(place, 'runs', 'submit', '--taskset', shown.taskset_ref)}")


def _line(found: Inventory) -> TasksetLine:
    from datetime import UTC, datetime

    from argo_harbor.model.documents import TasksetLine
    from argo_harbor.sources.manifest import BROKEN_HINT

    manifest = found.manifest
    return TasksetLine(
        taskset_ref=found.ref,
        name=found.name,
        digest=found.digest,
        total=len(manifest.members) if manifest else None,
        in_store=found.in_store,
        published_at=datetime.fromtimestamp(found.published, UTC).isoformat(timespec="seconds"),
        source=manifest.source if manifest else "",
        intake_dataset=manifest.dataset_label if manifest else "",
        problem="" if manifest else "its manifest is not what its digest says",
        hint="" if manifest else BROKEN_HINT,
    )
