"""The types of emitted objects are hera's, and hera's models take every emitted object as it is."""

from __future__ import annotations

import types
import typing
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from argo_harbor.workflow.compile import compile_workflow
from argo_harbor.workflow.emit import to_yaml
from tests.support import hera_models, workflows
from tests.support.large import SUITES, compiled
from tests.support.plans import example_plan
from tests.workflow.test_goldens import three


def test_the_types_are_generated() -> None:
    assert hera_models.OBJECTS.read_text() == hera_models.source()


def dumped(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def full(name: str, above: tuple[str, ...] = ()) -> dict[str, Any]:
    """An object with every field of an emitted class set. A class inside itself ends the descent."""
    above = (*above, name)
    found: dict[str, Any] = {}
    for key, field, written in hera_models.fields(name):
        if not {each.__name__ for each in models_in(field.annotation)}.intersection(above):
            found[key] = value(field.annotation, above)
        elif written.startswith("list["):
            found[key] = []
    return found


def value(annotation: Any, above: tuple[str, ...]) -> Any:
    annotation = hera_models.root_type(annotation)
    simple: dict[Any, Any] = {str: "08", bool: True, int: 7, float: 0.5}
    if annotation in simple:
        return simple[annotation]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return full(annotation.__name__, above)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is list:
        return [value(arguments[0], above)]
    if origin is dict:
        return {"y": value(arguments[1], above)}
    chosen = [each for each in arguments if each is not types.NoneType]
    return value(chosen[0], above)


def models_in(annotation: Any) -> list[type[BaseModel]]:
    annotation = hera_models.root_type(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for each in typing.get_args(annotation) for found in models_in(each)]


@pytest.mark.parametrize("name", hera_models.EMITTED)
def test_every_field_reaches_the_text(name: str) -> None:
    data = full(name)
    assert data.keys() or name == "NoneStrategy"
    taken = dumped(hera_models.model(name).model_validate(data))
    assert taken == data
    assert yaml.safe_load(to_yaml(taken)) == data


def round_trip(document: workflows.Object) -> workflows.Object:
    """The object through hera's models, which drop every field they do not know."""
    return dumped(hera_models.model(document["kind"]).model_validate(document))


@pytest.mark.parametrize("name", ["hello-world", "mixed", "allowlist"])
def test_hera_takes_the_examples(name: str) -> None:
    [document] = compile_workflow(example_plan(name))
    assert round_trip(dict(document)) == document


@pytest.mark.parametrize("kind", ["workflow", "workflowtemplate", "cronworkflow"])
def test_hera_takes_every_kind(kind: str) -> None:
    [document] = compile_workflow(three(), kind=kind, schedule="0 3 * * 1")  # type: ignore[arg-type]
    assert round_trip(dict(document)) == document


@pytest.mark.parametrize("suite", [each for each in SUITES if each.tasks == 1000], ids=lambda each: each.name)
def test_hera_takes_large_suites(suite: Any) -> None:
    for document in compiled(suite):
        assert round_trip(document) == document
