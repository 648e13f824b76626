"""Groups of flags that several commands take, each as one parameter.

A command says `source: Source`, `request: Request` or `place: Place`, and the program shows the flags of that
group: one flag means one thing everywhere, and is declared once.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer

from argo_harbor.cli import options
from argo_harbor.cli.options import NewSource, Request, Source
from argo_harbor.engines.place import EngineName, Place

_Engine = Annotated[
    EngineName | None,
    typer.Option(
        "--engine",
        help="Default: argo where the current kube context has a platform, else this machine.",
        rich_help_panel=options.WHERE,
    ),
]
_PLACE: dict[str, Any] = {
    "engine": _Engine,
    "platform": options.PlatformFile,
    "store": options.StoreDir,
    "context": options.Context,
    "namespace": options.Namespace,
}
_LAST = (Place,)
"""Groups that stand behind a command's own flags, before `--json`."""


def spread[R](command: Callable[..., R]) -> Callable[..., R]:
    """Give a command the flags of the groups that it takes as parameters."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type] = {}
    own: list[inspect.Parameter] = []
    last: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if hints[name] in (NewSource, Source, Request, Place):
            groups[name] = hints[name]
            (last if hints[name] in _LAST else own).extend(_flags(hints[name]))
        else:
            own.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def wrapped(**given: Any) -> R:
        made = {
            name: group(**{field.name: given.pop(field.name) for field in dataclasses.fields(group)})
            for name, group in groups.items()
        }
        return command(**made, **given)

    as_json = [each for each in own if each.name == "as_json"]
    ordered = [*(each for each in own if each.name != "as_json"), *last, *as_json]
    wrapped.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in ordered}
    # Else `get_type_hints` would read the annotations of what is wrapped.
    del wrapped.__wrapped__
    return wrapped


def _flags(group: type) -> list[inspect.Parameter]:
    flags = _PLACE if group is Place else get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=flags[field.name]
        )
        for field in dataclasses.fields(group)
    ]
