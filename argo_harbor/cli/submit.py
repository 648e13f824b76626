"""`argo-harbor runs submit`: publish what is missing, run, merge, and say where the report lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from argo_harbor.cli import options, output
from argo_harbor.cli.options import Request, Source
from argo_harbor.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK

if TYPE_CHECKING:
    from argo_harbor.cli.request import Planned
    from argo_harbor.engines.local import LocalEngine


def submit(
    harbor_dir: options.HarborDir = None,
    taskset: options.TasksetRef = None,
    tasks: options.Tasks = None,
    list_tasks: options.ListTasks = False,
    skip_refused: options.SkipRefused = False,
    agent: options.Agent = None,
    spec_file: options.SpecFile = None,
    overrides: options.Set = None,
    canary: options.Canary = None,
    sandbox_profile: options.SandboxProfile = None,
    cpus: options.Cpus = None,
    memory_mb: options.MemoryMb = None,
    storage_mb: options.StorageMb = None,
    engine: Annotated[
        Literal["local"],
        typer.Option("--engine", help="Where trials run.", rich_help_panel="Engine"),
    ] = "local",
    base: Annotated[
        Literal["auto", "image", "preview"],
        typer.Option(
            "--base",
            help="What sandboxes start from: real images, or a preview of this machine's own programs.",
            rich_help_panel="Engine",
        ),
    ] = "auto",
    allow_unfenced_network: Annotated[
        bool,
        typer.Option(
            "--allow-unfenced-network",
            help="Let public tasks share this machine's network under a profile that allows any host.",
            rich_help_panel="Engine",
        ),
    ] = False,
    platform: options.PlatformFile = None,
    store: options.StoreDir = None,
    as_json: options.Json = False,
) -> int:
    """Submit a run and follow it to its merged results."""
    from argo_harbor.cli import request
    from argo_harbor.cli.suite import print_tasks
    from argo_harbor.engines.local import LocalEngine
    from argo_harbor.engines.where import store_root

    root, _ = store_root(store)
    opened = LocalEngine.open(root)
    found = request.read_taskset(Source(harbor_dir=harbor_dir, taskset=taskset, tasks=tasks), opened.store)
    if list_tasks:
        print_tasks(found, as_json=as_json)
        return EXIT_OK
    asked = Request(
        agent=agent,
        spec_file=spec_file,
        overrides=tuple(overrides or ()),
        canary=canary,
        profile=sandbox_profile,
        cpus=cpus,
        memory_mb=memory_mb,
        storage_mb=storage_mb,
        platform=platform,
        skip_refused=skip_refused,
    )
    planned = request.make_plan(asked, found)
    rerun = rerun_line(planned, asked, tasks=tasks, base=base, allow_unfenced_network=allow_unfenced_network)
    return _run(
        planned,
        opened,
        base=base,
        allow_unfenced_network=allow_unfenced_network,
        rerun=rerun,
        engine_name=engine,
        as_json=as_json,
    )


def _run(
    planned: Planned,
    engine: LocalEngine,
    *,
    base: Literal["auto", "image", "preview"],
    allow_unfenced_network: bool,
    rerun: str,
    engine_name: str,
    as_json: bool,
) -> int:
    from argo_harbor.cli.progress import Live
    from argo_harbor.cli.show import print_results, run_document
    from argo_harbor.engines.base import RunInterrupted, SubmitOptions
    from argo_harbor.model.states import RunPhase

    asked = SubmitOptions(base=base, allow_unfenced_network=allow_unfenced_network, request={"rerun": rerun})
    warned = (*planned.taskset.warnings, *engine.check(planned.plan, planned.taskset, options=asked))
    if not as_json:
        output.line(f"Engine {engine_name}, store {engine.store.name}, platform {planned.platform_origin}")
        output.warnings(warned)
    try:
        with Live(planned, rerun=rerun, quiet_stdout=as_json) as live:
            run_id = engine.submit(planned.plan, planned.taskset, options=asked, progress=live)
    except RunInterrupted as stopped:
        output.note("interrupted: running trials were ended, nothing was merged")
        if as_json:
            output.document(run_document(engine, stopped.run_id, warned))
            output.note(f"argo-harbor runs merge {stopped.run_id}")
        else:
            output.line(f"argo-harbor runs merge {stopped.run_id}")
        return EXIT_INTERRUPTED
    if as_json:
        output.document(run_document(engine, run_id, warned))
    else:
        print_results(engine, run_id)
        output.line(f"Report: {engine.bundle_dir(run_id) / 'report.html'}")
    return EXIT_OK if engine.status(run_id).phase is RunPhase.COMPLETED else EXIT_FAILED


def rerun_line(
    planned: Planned, asked: Request, *, tasks: str | None, base: str, allow_unfenced_network: bool
) -> str:
    """The command that runs the same again from the store: every setting that changes the plan is in it."""
    import shlex

    words = ["argo-harbor", "runs", "submit", "--taskset", planned.taskset.ref]
    flags: list[tuple[str, object]] = [
        ("--tasks", tasks),
        ("--agent", asked.agent),
        ("--spec-file", asked.spec_file),
        *(("-O", override) for override in asked.overrides),
        ("--canary", asked.canary),
        ("--sandbox-profile", asked.profile),
        ("--cpus", None if asked.cpus is None else output.amount(asked.cpus)),
        ("--memory-mb", asked.memory_mb),
        ("--storage-mb", asked.storage_mb),
        ("--platform", asked.platform),
        ("--base", None if base == "auto" else base),
    ]
    for flag, value in flags:
        if value is not None:
            words += [flag, str(value)]
    words += ["--skip-refused"] if asked.skip_refused else []
    words += ["--allow-unfenced-network"] if allow_unfenced_network else []
    return shlex.join(words)
