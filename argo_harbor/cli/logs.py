"""`argo-harbor runs logs`: what trials, builds and the merge wrote, while they run and afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterable
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

LOOK_SECONDS = 2.0
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
    shown: set[str] = set()
    while True:
        over = not follow or engine.survey(run_id).ended is not None
        for text in _stored(engine, run_id, source, name, file):
            _print_once(f"{_title(text, what)}", text.text.rstrip("\n").splitlines(), shown)
        # Files of a trial come from the store alone; pods only know what their own program said.
        if not file and (follow or not shown):
            for log in engine.live_logs(run_id, source, follow=follow):
                _print_once(log.title, log.lines, shown)
        if over:
            break
        time.sleep(LOOK_SECONDS)
    if not shown:
        gone = "; a cluster removes pods that succeeded" if engine.name == "argo" and what == "merge" else ""
        output.note(f"no logs{gone}; argo-harbor runs tasks {run_id} shows where its tasks are")


def _print_once(title: str, lines: Iterable[str], shown: set[str]) -> None:
    if title not in shown:
        shown.add(title)
        output.line(f"==> {title} <==")
        for line in lines:
            output.line(line)


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
