"""`argo-harbor compile`: a suite and a request become a workflow that `argo submit` takes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from argo_harbor.cli import options, output
from argo_harbor.cli.options import Request, Source
from argo_harbor.collector import collector_paused
from argo_harbor.errors import Refused, UsageError

if TYPE_CHECKING:
    from argo_harbor.cli.request import Planned
    from argo_harbor.store.base import Store
    from argo_harbor.workflow.assemble import AnyWorkflow

Kind = Literal["workflow", "workflowtemplate", "cronworkflow"]


def compile_suite(
    named: Source,
    asked: Request,
    tasks: options.Tasks = None,
    list_tasks: options.ListTasks = False,
    folder: Annotated[
        str | None,
        typer.Option(
            "-o",
            metavar="DIR",
            help="Output folder; `-` prints only the workflow. Default: ./<taskset>-compiled.",
            rich_help_panel="Output",
        ),
    ] = None,
    kind: Annotated[
        Kind,
        typer.Option("--as", help="What to write.", rich_help_panel="Output"),
    ] = "workflow",
    schedule: Annotated[
        str | None,
        typer.Option(
            "--schedule",
            metavar="CRON",
            help="When a cronworkflow starts, e.g. '0 3 * * *'; without it, suspended.",
            rich_help_panel="Output",
        ),
    ] = None,
    publish: Annotated[
        bool,
        typer.Option(
            "--publish",
            help="Also upload what the workflow needs, so that `argo submit` of it runs.",
            rich_help_panel="Output",
        ),
    ] = False,
    platform: options.PlatformFile = None,
    store: options.StoreDir = None,
    as_json: options.Json = False,
) -> None:
    """Compile a suite to an Argo workflow, offline."""
    from argo_harbor.cli import request
    from argo_harbor.cli.suite import print_tasks
    from argo_harbor.settings.site import Site

    if schedule is not None and kind != "cronworkflow":
        raise UsageError(
            "bad_usage", f"--schedule means nothing to a {kind}", "write --as cronworkflow, or leave it out"
        )
    request.check_labels(asked, named)
    with collector_paused():
        source = request.open_source(named, None if named.taskset is None else _store(store))
        if list_tasks:
            print_tasks(source.list(tasks), as_json=as_json)
            return
        found = source.load(tasks)
        planned, objects = request.accepted(
            asked, found, Site.of_files(platform), partial(_compile, kind=kind, schedule=schedule)
        )
        if publish:
            _publish(planned, objects)
        _write(planned, objects, folder, as_json=as_json)


def _store(folder: Path | None) -> Store:
    from argo_harbor.engines.where import local_store

    return local_store(folder)


def _compile(planned: Planned, *, kind: Kind, schedule: str | None) -> list[AnyWorkflow]:
    from argo_harbor.planning.argo import argo_findings
    from argo_harbor.workflow.compile import compile_workflow

    refused = argo_findings(planned.plan)
    if refused:
        raise Refused.of(refused)
    return compile_workflow(planned.plan, kind=kind, schedule=schedule)


def _publish(planned: Planned, objects: list[AnyWorkflow]) -> None:
    """Bring plan, tasks and parts into the platform's store, with credentials of the user's environment: a
    compile asks no cluster."""
    from argo_harbor.engines.publish import publish
    from argo_harbor.store.opening import open_store

    platform = planned.site.platform
    store = open_store(platform, credentials=None, namespace=platform.namespace)
    done = publish(planned.plan, planned.taskset, store, workflows=objects)
    output.note(f"Published {done.taskset.added} of {len(planned.plan.head.tasks)} tasks to {store.name}")


def _write(planned: Planned, objects: list[AnyWorkflow], folder: str | None, *, as_json: bool) -> None:
    from argo_harbor.cli.compiled import write_compiled
    from argo_harbor.workflow.emit import to_yaml

    if folder == "-":
        if as_json:
            raise UsageError("bad_usage", "-o - and --json both want stdout", "leave one of them out")
        if len(objects) > 1:
            raise Refused(
                "compile_split",
                f"the workflow is too large for one object and has {len(objects) - 1} parts",
                "name a folder with -o DIR, or select fewer tasks",
            )
        output.warnings(planned.warnings)
        print(to_yaml(objects[0]), end="", flush=True)
        return
    target = Path(folder) if folder else Path(f"{planned.taskset.name}-compiled")
    files = write_compiled(planned.plan, objects, target)
    if as_json:
        from argo_harbor.model.documents import CompileDocument

        output.document(CompileDocument.of(planned.plan, files=files, warnings=planned.warnings))
        return
    output.warnings(planned.warnings)
    _print(planned, target, parts=len(objects) - 1)


def _print(planned: Planned, target: Path, *, parts: int) -> None:
    plan = planned.plan
    rows = []
    for entry in plan.head.tasks:
        if entry.skipped is not None:
            rows.append([str(entry.index), entry.name, f"skipped: {entry.skipped.code}", "", "", "", ""])
            continue
        part = plan.part(entry.index)
        request = part.resources.agent.request
        image = part.images.agent
        shown = f"build {image.key[:12]}" if image.kind == "build" else image.reference
        rows.append(
            [
                str(entry.index),
                entry.name,
                ", ".join((shown, *(f"service {service.name}" for service in part.services))),
                f"{output.amount(request.cpus)} cpu",
                output.size(request.memory_mb),
                part.rules.network_class + (" (narrowed)" if part.rules.narrowed else ""),
                output.duration(part.outer_seconds),
            ]
        )
    head = plan.head
    output.table(
        ["#", "Task", "Image", "CPU", "Memory", "Network", "At most"],
        rows,
        right=["#", "CPU", "Memory", "At most"],
    )
    cap = f"{head.limits.cap} at once"
    trials = len(head.running) * head.n_attempts
    output.line(
        f"\n{len(head.running)} tasks, {trials} trials ({cap}), agent {head.agent.name}, "
        f"profile {head.profile.name}, time budget {output.duration(head.limits.timeout_seconds)}"
    )
    split = f" and {parts} parts" if parts else ""
    output.line(f"Wrote {target / 'workflow.yaml'}{split}")
    output.line(f"Plan {plan.digest}")
