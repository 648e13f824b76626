"""`argo-harbor runs results, download, verify`: what a run has found, wherever it lies."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from argo_harbor.cli import options, output, show
from argo_harbor.cli.place import open_engine, run_id_of, task_of
from argo_harbor.engines.place import Place
from argo_harbor.errors import EXIT_FAILED, EXIT_OK

Target = Annotated[Path | None, typer.Option("-o", metavar="DIR", help="Where to. Default: ./<run>.")]
OneTask = Annotated[str | None, typer.Option("--task", metavar="TASK", help="A task by index or name.")]
RunOrFolder = Annotated[str, typer.Argument(metavar="RUN", help="A run id, `last`, or a downloaded folder.")]


def results(run: options.RunId, place: Place, as_json: options.Json = False) -> None:
    """Show a run's scores; before the merge, what there is so far."""
    engine = open_engine(place)
    run_id = run_id_of(engine, run)
    found = engine.survey(run_id).results()
    if as_json:
        output.document(found)
        return
    show.results_text(found)
    if found.result.bundle_ref:
        show.print_report(found.result.bundle_ref, place, run_id)


def download(
    run: options.RunId,
    place: Place,
    target: Target = None,
    task: OneTask = None,
    as_json: options.Json = False,
) -> None:
    """Copy the merged bundle, or one task's records, to a folder."""
    from argo_harbor.engines.download import download_bundle, download_task
    from argo_harbor.model.documents import DownloadDocument

    engine = open_engine(place)
    run_id = run_id_of(engine, run)
    folder = target or Path(run_id)
    if task is None:
        done = download_bundle(run_id, engine.store, folder)
    else:
        done = download_task(run_id, engine.store, task_of(engine, run_id, task)[0], folder)
    if as_json:
        output.document(DownloadDocument(run=run_id, path=str(done.path), files=done.files, bytes=done.bytes))
        return
    output.line(f"{done.path} ({done.files} files, {output.size(done.bytes / 2**20)})")


def verify(run: RunOrFolder, place: Place, as_json: options.Json = False) -> int:
    """Check a bundle's integrity, and whether its scores may be reported."""
    from argo_harbor.bundle.verify import verify as verify_bundle

    with ExitStack() as stack:
        folder = Path(run)
        # Not Path's, which raises for names that no folder can have.
        if not os.path.isdir(run):
            engine = open_engine(place)
            folder = stack.enter_context(engine.bundle(run_id_of(engine, run)))
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
