"""`argo-harbor runs …`: follow runs and use their results. `submit` has a module of its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from argo_harbor.cli import options, output, show
from argo_harbor.cli.grouped import GroupedOptions
from argo_harbor.errors import EXIT_FAILED, EXIT_OK, UsageError

if TYPE_CHECKING:
    from argo_harbor.engines.local import LocalEngine

Phase = Annotated[
    str | None, typer.Option("--phase", metavar="PHASE", help="Only tasks of this phase, e.g. failed.")
]
Active = Annotated[bool, typer.Option("--active", help="Only runs that are not over.")]
OneTask = Annotated[str | None, typer.Option("--task", metavar="TASK", help="A task by index or name.")]
Attempt = Annotated[int | None, typer.Option("--attempt", metavar="N", min=0, help="Only this attempt.")]
LogFile = Annotated[
    str, typer.Option("--file", metavar="PATH", help="One file of the trial, e.g. agent/oracle.txt.")
]
Target = Annotated[Path | None, typer.Option("-o", metavar="DIR", help="Where to. Default: ./<run>.")]


def register(app: typer.Typer) -> None:
    """Add the verbs to the `runs` group, in the order of a run's life."""
    for panel, verbs in (
        ("Follow", (status, info, list_runs, tasks, logs)),
        ("Results", (results, download, verify, merge)),
    ):
        for verb in verbs:
            app.command(verb.__name__.removesuffix("_runs"), cls=GroupedOptions, rich_help_panel=panel)(verb)


def _open(store: Path | None) -> LocalEngine:
    from argo_harbor.engines.local import LocalEngine
    from argo_harbor.engines.where import store_root

    return LocalEngine.open(store_root(store)[0])


def _run_id(engine: LocalEngine, text: str) -> str:
    """A run id as given, or the newest run for `last`."""
    if text != "last":
        return text
    known = engine.list_runs()
    if not known:
        raise UsageError(
            "unknown_run", f"there is no run in {engine.store.name}", "argo-harbor runs submit starts one"
        )
    return known[0]


def status(run: options.RunId, store: options.StoreDir = None, as_json: options.Json = False) -> None:
    """Show where a run is."""
    engine = _open(store)
    document = engine.survey(_run_id(engine, run)).status()
    if as_json:
        output.document(document)
        return
    show.print_run(document)
    output.line(f"\nScores: argo-harbor runs results {document.run.id}")


def info(run: options.RunId, store: options.StoreDir = None, as_json: options.Json = False) -> None:
    """Show a run and each of its tasks."""
    engine = _open(store)
    survey = engine.survey(_run_id(engine, run))
    if as_json:
        output.document(survey.status())
        return
    show.print_run(survey.status())
    output.line()
    show.print_tasks(survey.tasks().tasks)


def list_runs(active: Active = False, store: options.StoreDir = None, as_json: options.Json = False) -> None:
    """List the runs of the store, the newest first."""
    from argo_harbor.model.documents import RunsDocument

    engine = _open(store)
    found = [engine.status(run_id) for run_id in engine.list_runs()]
    if active:
        found = [run for run in found if not run.phase.terminal]
    if as_json:
        output.document(RunsDocument(runs=tuple(found)))
        return
    output.table(
        ["Run", "Phase", "Result", "Taskset", "Profile", "Base"],
        (
            [run.id, run.phase, run.result_state, _short(run.taskset_ref), run.profile, run.base or "-"]
            for run in found
        ),
    )


def _short(taskset_ref: str) -> str:
    name, _, digest = taskset_ref.partition("#")
    return f"{name}#{digest[:12]}"


def tasks(
    run: options.RunId, phase: Phase = None, store: options.StoreDir = None, as_json: options.Json = False
) -> None:
    """List a run's tasks with their phases and trials."""
    from argo_harbor.model.documents import TasksDocument

    engine = _open(store)
    wanted = show.phases(phase) if phase is not None else None
    lines = engine.survey(_run_id(engine, run)).tasks().tasks
    if wanted is not None:
        lines = tuple(line for line in lines if line.phase is wanted)
    if as_json:
        output.document(TasksDocument(tasks=lines))
        return
    show.print_tasks(lines)


def logs(
    run: options.RunId,
    task: OneTask = None,
    attempt: Attempt = None,
    file: LogFile = "",
    store: options.StoreDir = None,
    as_json: options.Json = False,
) -> None:
    """Print the logs of a task's trials."""
    from argo_harbor.engines.logs import trial_logs
    from argo_harbor.model.documents import LogsDocument, LogText

    engine = _open(store)
    run_id = _run_id(engine, run)
    index, name = _task(engine, run_id, task)
    found = list(trial_logs(run_id, engine.store, index, attempt=attempt, file=file))
    if as_json:
        texts = tuple(
            LogText.model_validate(
                {"task": name, "attempt": log.attempt, "try": log.try_, "file": log.file, "text": log.text}
            )
            for log in found
        )
        output.document(LogsDocument(run=run_id, logs=texts))
        return
    for log in found:
        output.line(f"==> {name} attempt {log.attempt} try {log.try_ + 1}: {log.file} <==")
        output.line(log.text.rstrip("\n"))
    if not found:
        output.note(f"no logs; argo-harbor runs tasks {run_id} shows where the task is")


def _task(engine: LocalEngine, run_id: str, wanted: str | None) -> tuple[int, str]:
    """Index and name of the task that `--task` names; the only task of a run needs no name."""
    lines = engine.survey(run_id).tasks().tasks
    if wanted is None:
        if len(lines) == 1:
            return lines[0].index, lines[0].name
        raise UsageError("bad_usage", f"{run_id} has {len(lines)} tasks", "name one with --task")
    for line in lines:
        if wanted in (str(line.index), line.name, line.name.rpartition("/")[2]):
            return line.index, line.name
    raise UsageError(
        "unknown_tasks", f"{wanted!r} is no task of {run_id}", f"argo-harbor runs tasks {run_id} lists them"
    )


def results(run: options.RunId, store: options.StoreDir = None, as_json: options.Json = False) -> None:
    """Show a run's scores; before the merge, what there is so far."""
    engine = _open(store)
    found = engine.survey(_run_id(engine, run)).results()
    if as_json:
        output.document(found)
        return
    show.results_text(found)
    if found.result.bundle_ref:
        output.line(f"Report: {found.result.bundle_ref}/report.html")


def download(
    run: options.RunId,
    target: Target = None,
    task: OneTask = None,
    store: options.StoreDir = None,
    as_json: options.Json = False,
) -> None:
    """Copy the merged bundle, or one task's records, to a folder."""
    from argo_harbor.engines.download import download_bundle, download_task
    from argo_harbor.model.documents import DownloadDocument

    engine = _open(store)
    run_id = _run_id(engine, run)
    folder = target or Path(run_id)
    if task is None:
        done = download_bundle(run_id, engine.store, folder)
    else:
        done = download_task(run_id, engine.store, _task(engine, run_id, task)[0], folder)
    if as_json:
        output.document(DownloadDocument(run=run_id, path=str(done.path), files=done.files, bytes=done.bytes))
        return
    output.line(f"{done.path} ({done.files} files, {output.size(done.bytes / 2**20)})")


def verify(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run id, `last`, or a downloaded folder.")],
    store: options.StoreDir = None,
    as_json: options.Json = False,
) -> int:
    """Check a bundle's integrity, and whether its scores may be reported."""
    from argo_harbor.bundle.verify import verify as verify_bundle

    folder = Path(run)
    # Not Path's, which raises for names that no folder can have.
    if not os.path.isdir(run):
        engine = _open(store)
        run_id = _run_id(engine, run)
        engine.status(run_id)
        folder = engine.bundle_dir(run_id)
    found = verify_bundle(folder)
    if as_json:
        output.document(found)
    else:
        for problem in found.problems:
            output.line(f"{problem.code}: {problem.message}")
        output.line("whole" if found.ok else "NOT whole")
        output.line(
            "the scores may be reported" if found.reportable else "the scores may NOT be reported as they are"
        )
    return EXIT_OK if found.ok else EXIT_FAILED


def merge(run: options.RunId, store: options.StoreDir = None, as_json: options.Json = False) -> None:
    """Finish an interrupted run, or merge once more what is there."""
    engine = _open(store)
    run_id = _run_id(engine, run)
    engine.merge(run_id)
    if as_json:
        output.document(show.run_document(engine, run_id))
        return
    show.print_results(engine, run_id)
    output.line(f"Report: {engine.bundle_dir(run_id) / 'report.html'}")
