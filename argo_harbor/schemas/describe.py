"""Puts the docstrings that stand under fields into the published schemas.

pydantic can do it for every model, but then reads and parses sources whenever the program starts.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic import BaseModel


def describe(schema: dict[str, Any], root: type[BaseModel]) -> None:
    """Add a description to each property that has none and whose field has a docstring. Changes `schema`."""
    _fill(schema, root)
    models = list(_subclasses(BaseModel))
    for name, definition in schema.get("$defs", {}).items():
        for model in models:
            # Two models may have one name; then their fields tell which it is.
            if model.__name__ == name and set(definition.get("properties", {})) <= _shown_names(model):
                _fill(definition, model)


def _fill(schema: dict[str, Any], model: type[BaseModel]) -> None:
    docs = {name: text for cls in reversed(model.__mro__) for name, text in _field_docs(cls).items()}
    properties = schema.get("properties", {})
    for name, field in model.model_fields.items():
        shown = properties.get(field.serialization_alias or field.alias or name)
        if shown is not None and name in docs:
            shown.setdefault("description", docs[name])


def _shown_names(model: type[BaseModel]) -> set[str]:
    return {field.serialization_alias or field.alias or name for name, field in model.model_fields.items()}


def _field_docs(cls: type) -> dict[str, str]:
    if not issubclass(cls, BaseModel) or cls is BaseModel:
        return {}
    return _module_docs(cls.__module__).get(cls.__name__, {})


@cache
def _module_docs(module: str) -> dict[str, dict[str, str]]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: dict(_docs(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _docs(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement, after in zip(node.body, node.body[1:], strict=False):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        ):
            yield statement.target.id, inspect.cleandoc(after.value.value)


def _subclasses(cls: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for child in cls.__subclasses__():
        if child.__module__.startswith("argo_harbor."):
            yield child
        yield from _subclasses(child)
