"""Where a command works: its engine, store and cluster, and command lines that lead to the same place."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from argo_harbor.cli import output
from argo_harbor.engines.place import Place

if TYPE_CHECKING:
    from argo_harbor.engines.base import Engine
    from argo_harbor.engines.where import Chosen


def choose(place: Place) -> Chosen:
    """The engine and settings of a place; why it is this machine is told where that may surprise."""
    from argo_harbor.engines import where

    return where.choose(place)


def open_engine(place: Place) -> Engine:
    """The engine of a place, for commands that look at runs."""
    chosen = choose(place)
    if chosen.because:
        output.note(f"looking on this machine: {chosen.because}")
    return chosen.engine


def command(place: Place, *words: str) -> str:
    """A command line to copy, with the flags that lead to the same place."""
    flags = (
        ("--engine", place.engine),
        ("--platform", place.platform),
        ("--store", place.store),
        ("--context", place.context),
        ("--namespace", place.namespace),
    )
    given = [word for flag, value in flags if value is not None for word in (flag, str(value))]
    return shlex.join(["argo-harbor", *words, *given])


def run_id_of(engine: Engine, text: str) -> str:
    """A run id as given, or the newest run for `last`. Raises UsageError `unknown_run`."""
    from argo_harbor.errors import UsageError

    if text != "last":
        return text
    newest = engine.newest()
    if newest is None:
        raise UsageError(
            "unknown_run", f"there is no run in {engine.store.name}", "argo-harbor runs submit starts one"
        )
    return newest


def task_of(engine: Engine, run_id: str, wanted: str | None) -> tuple[int, str]:
    """Index and name of the task that `--task` names; the only task of a run needs no name.

    Raises UsageError `bad_usage`, `unknown_tasks`.
    """
    from argo_harbor.errors import UsageError

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
