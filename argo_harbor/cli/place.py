"""The flags that say where a command works, the same for every command that touches a store or a run."""

from __future__ import annotations

import functools
import inspect
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from argo_harbor.cli import options, output
from argo_harbor.engines.place import EngineName, Place

if TYPE_CHECKING:
    from argo_harbor.engines.base import Engine
    from argo_harbor.engines.where import Chosen

_Engine = Annotated[
    EngineName | None,
    typer.Option(
        "--engine",
        help="Default: argo where the current kube context has a platform, else this machine.",
        rich_help_panel=options.WHERE,
    ),
]
_FLAGS: dict[str, Any] = {
    "engine": _Engine,
    "platform": options.PlatformFile,
    "store": options.StoreDir,
    "context": options.Context,
    "namespace": options.Namespace,
}


def placed[R](command: Callable[..., R]) -> Callable[..., R]:
    """Give a command the flags of `Place`, which it takes as its parameter `place`."""
    hints = get_type_hints(command, include_extras=True)
    own = [
        parameter.replace(annotation=hints[name])
        for name, parameter in inspect.signature(command).parameters.items()
        if name != "place"
    ]
    flags = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=flag)
        for name, flag in _FLAGS.items()
    ]

    @functools.wraps(command)
    def wrapped(**given: Any) -> R:
        place = Place(**{name: given.pop(name) for name in _FLAGS})
        return command(place=place, **given)

    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    as_json = [each for each in parameters if each.name == "as_json"]
    ordered = [*(each for each in parameters if each.name != "as_json"), *flags, *as_json]
    wrapped.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in ordered}
    # Else `get_type_hints` would read the annotations of what is wrapped.
    del wrapped.__wrapped__
    return wrapped


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
