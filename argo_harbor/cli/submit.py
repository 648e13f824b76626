"""`argo-harbor runs submit`: publish what is missing, start the run, and say how to follow and repeat it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from argo_harbor.cli import options, output
from argo_harbor.cli.options import Request, Source
from argo_harbor.cli.place import choose, command
from argo_harbor.engines.place import Place
from argo_harbor.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK

if TYPE_CHECKING:
    from argo_harbor.cli.request import Planned
    from argo_harbor.engines.base import SubmitOptions
    from argo_harbor.engines.where import Chosen
    from argo_harbor.model.taskset import Taskset, Warned

Base = Literal["auto", "image", "preview"]
_RUN = "Run"


def submit(
    named: Source,
    asked: Request,
    place: Place,
    tasks: options.Tasks = None,
    list_tasks: options.ListTasks = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check everything and start nothing.", rich_help_panel=_RUN),
    ] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Follow the run to its end; exit 1 unless it completed.", rich_help_panel=_RUN
        ),
    ] = False,
    wait: Annotated[
        bool,
        typer.Option("--wait", help="Wait for the end; exit 1 unless it completed.", rich_help_panel=_RUN),
    ] = False,
    idempotency_key: Annotated[
        str,
        typer.Option(
            "--idempotency-key",
            metavar="KEY",
            help="The same request under the same key is one run, however often it is sent.",
            rich_help_panel=_RUN,
        ),
    ] = "",
    base: options.Base = "auto",
    allow_unfenced_network: Annotated[
        bool,
        typer.Option(
            "--allow-unfenced-network",
            help="Let public tasks share this machine's network under a profile that allows any host.",
            rich_help_panel="Local engine",
        ),
    ] = False,
    as_json: options.Json = False,
) -> int:
    """Submit a run. On this machine it stays until the results are merged."""
    from argo_harbor.cli import request
    from argo_harbor.cli.build_inputs import build_line
    from argo_harbor.cli.suite import print_tasks
    from argo_harbor.engines.base import SubmitOptions

    request.check_labels(asked, named)
    chosen: Chosen | None = None
    if named.taskset is not None:
        chosen = choose(place)
    source = request.open_source(named, chosen.engine.store if chosen else None)
    if list_tasks:
        print_tasks(source.list(tasks), as_json=as_json)
        return EXIT_OK
    found = source.load(tasks)
    if tasks is None and len(found) < found.total:
        # A part of the suite was published. More may be some day, and the same command shall run the same.
        tasks = ",".join(str(task.index) for task in found)
    chosen = chosen or choose(place)
    rerun = rerun_line(
        found, asked, place, tasks=tasks, base=base, allow_unfenced_network=allow_unfenced_network
    )
    engine, site = chosen.engine, chosen.site

    def offered(planned: Planned) -> tuple[SubmitOptions, list[Warned]]:
        build_first = build_line(
            place,
            found.ref,
            tasks=tasks,
            inputs=planned.spec.execution.build,
            skip_refused=asked.skip_refused,
            base=base,
        )
        wanted = SubmitOptions(
            base=base,
            allow_unfenced_network=allow_unfenced_network,
            idempotency_key=idempotency_key,
            build_first=build_first if named.taskset is not None else "",
            request={"rerun": rerun},
        )
        return wanted, engine.check(planned.plan, found, options=wanted)

    planned, (wanted, told) = request.accepted(asked, found, site, offered)
    warned = (*planned.warnings, *told)
    if not as_json:
        output.line(first_line(chosen))
        output.warnings(warned)
    if dry_run:
        from argo_harbor.cli.dry_run import show_dry_run

        return show_dry_run(planned, engine, wanted, warned, as_json=as_json)
    return _Submission(planned, chosen, wanted, warned, place, as_json).run(watch=watch, wait=wait)


def first_line(chosen: Chosen) -> str:
    """Where the run will be: engine, context and namespace, store, and whose settings."""
    engine = chosen.engine
    because = f" ({chosen.because})" if chosen.because else ""
    place = f", {engine.place}" if engine.place else ""
    return f"Engine {engine.name}{because}{place}, store {engine.store.name}, platform {chosen.site.origin}"


class _Submission:
    """One submit after everything is decided."""

    def __init__(
        self,
        planned: Planned,
        chosen: Chosen,
        wanted: SubmitOptions,
        warned: tuple[Warned, ...],
        place: Place,
        as_json: bool,
    ) -> None:
        self._planned = planned
        self._engine = chosen.engine
        self._wanted = wanted
        self._warned = warned
        self._place = place
        self._json = as_json

    def run(self, *, watch: bool, wait: bool) -> int:
        from argo_harbor.cli.progress import Live
        from argo_harbor.engines.base import RunInterrupted

        engine, planned = self._engine, self._planned
        try:
            with Live(
                planned,
                rerun=str(self._wanted.request["rerun"]),
                follow=follow_line(self._place, engine.name),
                quiet_stdout=self._json,
                picture=engine.name == "local",
            ) as live:
                run_id = engine.submit(planned.plan, planned.taskset, options=self._wanted, progress=live)
        except RunInterrupted as stopped:
            return self._interrupted(stopped.run_id)
        if engine.name == "argo" and not (watch or wait):
            if self._json:
                self._document(run_id)
            return EXIT_OK
        return self._results(run_id, picture=watch)

    def _results(self, run_id: str, *, picture: bool) -> int:
        from argo_harbor.cli.show import print_report, print_results
        from argo_harbor.cli.watch import follow
        from argo_harbor.model.states import RunPhase

        if self._engine.name == "argo":
            follow(self._engine, run_id, picture=picture)
        if self._json:
            self._document(run_id)
        else:
            print_results(self._engine, run_id)
            print_report(self._engine.bundle_ref(run_id), self._place, run_id)
        done = self._engine.survey(run_id).run.phase is RunPhase.COMPLETED
        return EXIT_OK if done else EXIT_FAILED

    def _interrupted(self, run_id: str) -> int:
        output.note("interrupted: running trials were ended, nothing was merged")
        if self._json:
            self._document(run_id)
            output.note(f"argo-harbor runs merge {run_id}")
        else:
            output.line(f"argo-harbor runs merge {run_id}")
        return EXIT_INTERRUPTED

    def _document(self, run_id: str) -> None:
        from argo_harbor.cli.show import run_document

        output.document(run_document(self._engine, run_id, self._warned))


def follow_line(place: Place, engine: str) -> str:
    """The command that follows a run, `RUN` standing for its id."""
    return command(place, "runs", "status", "RUN", *(["--watch"] if engine == "argo" else []))


def rerun_line(
    taskset: Taskset,
    asked: Request,
    place: Place,
    *,
    tasks: str | None,
    base: Base,
    allow_unfenced_network: bool,
) -> str:
    """The command that runs the same again from the store: every setting that changes the plan is in it."""
    from argo_harbor.cli.build_inputs import build_flags, build_inputs

    words = ["runs", "submit", "--taskset", taskset.ref]
    flags: list[tuple[str, object]] = [
        ("--tasks", tasks),
        ("--agent", asked.agent),
        ("--spec-file", asked.spec_file),
        *(("-O", override) for override in asked.overrides or ()),
        ("--canary", asked.canary),
        ("--experiment", asked.experiment),
        ("--intake-dataset", asked.intake_dataset),
        ("--sandbox-profile", asked.profile),
        ("--cpus", None if asked.cpus is None else output.amount(asked.cpus)),
        ("--memory-mb", asked.memory_mb),
        ("--storage-mb", asked.storage_mb),
        ("--base", None if base == "auto" else base),
        *build_flags(build_inputs(asked.build_args or (), asked.build_secrets or ())),
    ]
    for flag, value in flags:
        if value is not None:
            words += [flag, str(value)]
    words += ["--skip-refused"] if asked.skip_refused else []
    words += ["--allow-unfenced-network"] if allow_unfenced_network else []
    return command(place, *words)
