"""`argo-harbor runs …`: follow runs and end them. `submit`, results and logs have modules of their own."""

from __future__ import annotations

from typing import Annotated

import typer

from argo_harbor.cli import logs as logs_command
from argo_harbor.cli import options, output, results, show
from argo_harbor.cli.flags import spread
from argo_harbor.cli.grouped import GroupedOptions
from argo_harbor.cli.place import command, open_engine, run_id_of
from argo_harbor.engines.place import Place
from argo_harbor.errors import EXIT_OK
from argo_harbor.model.states import ResultState

Phase = Annotated[
    str | None, typer.Option("--phase", metavar="PHASE", help="Only tasks of this phase, e.g. failed.")
]
Active = Annotated[bool, typer.Option("--active", help="Only runs that are not over.")]
Mine = Annotated[bool, typer.Option("--mine", help="Only runs that you submitted.")]
WithLogs = Annotated[bool, typer.Option("--logs", help="Add where the log of each trial lies.")]
Watch = Annotated[
    bool, typer.Option("--watch", help="Follow the run to its end; exit 1 unless it completed.")
]
Wait = Annotated[
    bool, typer.Option("--wait", help="Wait for the end without a picture; exit 1 unless it completed.")
]


def register(app: typer.Typer) -> None:
    """Add the verbs to the `runs` group, in the order of a run's life."""
    for panel, verbs in (
        ("Follow", (status, info, list_runs, tasks, logs_command.logs)),
        ("End", (cancel, merge)),
        ("Results", (results.results, results.download, results.verify)),
    ):
        for verb in verbs:
            name = verb.__name__.removesuffix("_runs")
            app.command(name, cls=GroupedOptions, rich_help_panel=panel)(spread(verb))


def status(
    run: options.RunId,
    place: Place,
    watch: Watch = False,
    wait: Wait = False,
    as_json: options.Json = False,
) -> int:
    """Show where a run is, or follow it to its end."""
    from argo_harbor.cli.watch import follow

    engine = open_engine(place)
    run_id = run_id_of(engine, run)
    status = EXIT_OK
    if watch or wait:
        status = follow(engine, run_id, picture=watch)
    document = engine.survey(run_id).status()
    if as_json:
        output.document(document)
        return status
    show.print_run(document)
    if document.run.phase.terminal and document.run.result_state is ResultState.FAILED:
        output.line(f"\nNot merged yet: {command(place, 'runs', 'merge', run_id)}")
    elif document.run.phase.terminal:
        output.line(f"\nScores: {command(place, 'runs', 'results', run_id)}")
    else:
        output.line(f"\nFollow it: {command(place, 'runs', 'status', run_id, '--watch')}")
    return status


def info(run: options.RunId, place: Place, logs: WithLogs = False, as_json: options.Json = False) -> None:
    """Show a run, its steps and each of its tasks."""
    engine = open_engine(place)
    run_id = run_id_of(engine, run)
    survey = engine.survey(run_id)
    if as_json:
        output.document(survey.status())
        return
    show.print_run(survey.status())
    if survey.observed.steps:
        output.line()
        show.print_steps(survey.observed.steps)
    output.line()
    show.print_tasks(survey.tasks().tasks)
    if logs:
        output.line()
        show.print_logs(engine, run_id)


def list_runs(
    place: Place, mine: Mine = False, active: Active = False, as_json: options.Json = False
) -> None:
    """List runs, the newest first."""
    from argo_harbor.model.documents import RunsDocument

    found = open_engine(place).list_runs(mine=mine, active=active)
    if as_json:
        output.document(RunsDocument(runs=tuple(found)))
        return
    if not found:
        output.note("no such run; argo-harbor runs submit starts one")
        return
    output.table(
        ["Run", "Phase", "Result", "Taskset", "Profile", "Base", "Submitted", "By"],
        (
            [
                run.id,
                run.phase,
                run.result_state,
                _short(run.taskset_ref),
                run.profile,
                run.base or "-",
                output.when(run.submitted_at),
                run.user or "-",
            ]
            for run in found
        ),
    )


def _short(taskset_ref: str) -> str:
    name, _, digest = taskset_ref.partition("#")
    return f"{name}#{digest[:12]}"


def tasks(run: options.RunId, place: Place, phase: Phase = None, as_json: options.Json = False) -> None:
    """List a run's tasks with their phases and trials."""
    from argo_harbor.model.documents import TasksDocument

    wanted = show.phases(phase) if phase is not None else None
    engine = open_engine(place)
    lines = engine.survey(run_id_of(engine, run)).tasks().tasks
    if wanted is not None:
        lines = tuple(line for line in lines if line.phase is wanted)
    if as_json:
        output.document(TasksDocument(tasks=lines))
        return
    show.print_tasks(lines)


def cancel(run: options.RunId, place: Place, as_json: options.Json = False) -> None:
    """End a run. What succeeded is kept and merged."""
    engine = open_engine(place)
    run_id = run_id_of(engine, run)
    ended = engine.cancel(run_id)
    document = engine.survey(run_id).status()
    if as_json:
        output.document(document)
        return
    if not ended:
        output.line(f"Run {run_id} was over already: {document.run.phase.value}")
    elif document.run.phase.terminal:
        output.line(f"Run {run_id} {document.run.phase.value}")
        output.line(f"Scores: {command(place, 'runs', 'results', run_id)}")
    else:
        output.line(f"Run {run_id} is ending: running trials are stopped, then what there is is merged")
        output.line(f"Follow it: {command(place, 'runs', 'status', run_id, '--watch')}")


def merge(run: options.RunId, place: Place, as_json: options.Json = False) -> None:
    """Finish an interrupted run, or merge once more what is there."""
    engine = open_engine(place)
    run_id = run_id_of(engine, run)
    engine.merge(run_id)
    if as_json:
        output.document(show.run_document(engine, run_id))
        return
    show.print_results(engine, run_id)
    show.print_report(engine.bundle_ref(run_id), place, run_id)
