"""Keys of task.toml that no model knows, each with the nearest key that exists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, get_args

from argo_harbor.model.task import EnvironmentConfig, TaskConfig, TaskModel

_BARE = re.compile(r"[A-Za-z0-9_-]+")


class Key(NamedTuple):
    """A key as it stands in the file."""

    path: str
    """Dotted, with `[0]` for entries of arrays."""
    name: str
    table: str
    """Dotted path of the table it stands in, empty for the root."""
    model: type[TaskModel]


def deprecated_keys(model: type[TaskModel]) -> Mapping[str, str]:
    """Old keys that are still read, each with the key that replaced it."""
    return _DEPRECATED.get(model, {})


_DEPRECATED: Mapping[type[TaskModel], Mapping[str, str]] = {
    TaskConfig: {"version": "schema_version"},
    EnvironmentConfig: {"memory": "memory_mb", "storage": "storage_mb", "allow_internet": "network_mode"},
}


def odd_keys(data: Mapping[str, Any], model: type[TaskModel] = TaskConfig, table: str = "") -> Iterator[Key]:
    """Every key that is unknown or deprecated, in the order of the file."""
    known = _known(model)
    deprecated = deprecated_keys(model)
    for name, value in data.items():
        if name not in known or name in deprecated:
            yield Key(dotted(table, name), name, table, model)
            continue
        inner = known[name]
        if inner is None:
            continue
        if isinstance(value, dict):
            yield from odd_keys(value, inner, dotted(table, name))
        elif isinstance(value, list):
            for number, entry in enumerate(value):
                if isinstance(entry, dict):
                    yield from odd_keys(entry, inner, f"{dotted(table, name)}[{number}]")


def nearest_key(key: Key) -> str:
    """A sentence that names the key that was probably meant, or the keys that there are."""
    import difflib

    known = _known(key.model)
    close = difflib.get_close_matches(key.name, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean {dotted(key.table, close[0])}?"
    elsewhere = [path for path in _all_paths(TaskConfig) if path.rpartition(".")[2] == key.name]
    if elsewhere:
        return f"did you mean {min(elsewhere, key=lambda path: path.count('.'))}?"
    where = f"[{key.table}]" if key.table else "the top level"
    return f"keys of {where}: {', '.join(known)}"


def dotted(table: str, name: object) -> str:
    """`table.name`, the name quoted where TOML needs it, so that it is safe to print."""
    text = str(name)
    shown = text if _BARE.fullmatch(text) else json.dumps(text)
    return f"{table}.{shown}" if table else shown


@cache
def _known(model: type[TaskModel]) -> Mapping[str, type[TaskModel] | None]:
    return {name: _inner_model(field.annotation) for name, field in model.model_fields.items()}


def _inner_model(annotation: object) -> type[TaskModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, TaskModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _inner_model(part))), None)


def _all_paths(model: type[TaskModel], table: str = "") -> Iterator[str]:
    for name, inner in _known(model).items():
        yield dotted(table, name)
        if inner is not None:
            yield from _all_paths(inner, dotted(table, name))
