"""`argo-harbor runs logs`: what trials, builds and the merge wrote, while they run and afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from argo_harbor.cli import options, output
from argo_harbor.cli.place import open_engine, run_id_of, task_of
from argo_harbor.cli.results import OneTask
from argo_harbor.engines.place import Place
from argo_harbor.errors import UsageError

if TYPE_CHECKING:
    from argo_harbor.engines.base import Engine, LogSource
    from argo_harbor.model.documents import LogText

What = Literal["trial", "build", "merge"]
Attempt = Annotated[int | None, typer.Option("--attempt", metavar="N", min=0, help="Only this attempt.")]
LogFile = Annotated[
    str, typer.Option("--file", metavar="PATH", help="One file of the trial, e.g. agent/oracle.txt.")
]
OfBuild = Annotated[bool, typer.Option("--build", help="How images were built; of one task with --task.")]
OfMerge = Annotated[bool, typer.Option("--merge", help="What the merge said.")]
Follow = Annotated[bool, typer.Option("-f", "--follow", help="Go on while the pod writes.")]


def logs(
    run: options.RunId,
    place: Place,
    task: OneTask = None,
    attempt: Attempt = None,
    file: LogFile = "",
    build: OfBuild = False,
    merge: OfMerge = False,
    follow: Follow = False,
    as_json: options.Json = False,
) -> None:
    """Print the logs of a task's trials, of the builds or of the merge."""
    from argo_harbor.engines.base import LogSource

    if (build and merge) or (merge and task is not None) or (follow and as_json):
        raise UsageError(
            "bad_usage", "these flags exclude one another", "--build or --merge or --task; -f without --json"
        )
    engine = open_engine(place)
    run_id = run_id_of(engine, run)
    index, name = (None, "")
    if not merge and (task is not None or not build):
        index, name = task_of(engine, run_id, task)
    what: What = "build" if build else "merge" if merge else "trial"
    source = LogSource(what, index, attempt)
    if as_json:
        from argo_harbor.model.documents import LogsDocument

        output.document(LogsDocument(run=run_id, logs=tuple(_stored(engine, run_id, source, name, file))))
        return
    shown = 0
    for text in _stored(engine, run_id, source, name, file):
        output.line(f"==> {_title(text, what)} <==")
        output.line(text.text.rstrip("\n"))
        shown += 1
    # Files of a trial come from the store alone; pods only know what their own program said.
    if not file and (follow or not shown):
        shown += _live(engine, run_id, source, follow=follow)
    if not shown:
        output.note(f"no logs; argo-harbor runs tasks {run_id} shows where its tasks are")


def _stored(engine: Engine, run_id: str, source: LogSource, name: str, file: str) -> list[LogText]:
    from argo_harbor.engines.logs import build_logs, trial_logs
    from argo_harbor.model.documents import LogText

    if source.what == "build":
        return build_logs(run_id, engine.store, source.task)
    if source.what == "merge" or source.task is None:
        return []
    return [
        LogText.model_validate(
            {"task": name, "attempt": log.attempt, "try": log.try_, "file": log.file, "text": log.text}
        )
        for log in trial_logs(run_id, engine.store, source.task, attempt=source.attempt, file=file)
    ]


def _title(text: LogText, what: What) -> str:
    if what == "build":
        return f"{text.task}: {text.file}"
    return f"{text.task} attempt {text.attempt} try {text.try_ + 1}: {text.file}"


def _live(engine: Engine, run_id: str, source: LogSource, *, follow: bool) -> int:
    shown = 0
    for log in engine.live_logs(run_id, source, follow=follow):
        output.line(f"==> {log.title} <==")
        for line in log.lines:
            output.line(line)
        shown += 1
    return shown
