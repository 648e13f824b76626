from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from argo_harbor.workflow import limits
from argo_harbor.workflow.compile import compile_workflow
from argo_harbor.workflow.limits import breaches, fits, size
from tests.support.plans import built, run_plan, task_plan

Object = dict[str, Any]


@pytest.fixture(scope="module")
def sound() -> Object:
    [document] = compile_workflow(run_plan([task_plan(0, image=built("a")), task_plan(1)], attempts=2))
    return dict(document)


def template(document: Object, name: str) -> Object:
    [found] = [each for each in document["spec"]["templates"] if each["name"] == name]
    return found


def trial(document: Object) -> Object:
    [found] = [each for each in document["spec"]["templates"] if each["name"].startswith("trial-")]
    return found


def main(document: Object) -> list[Object]:
    entries: list[Object] = template(document, "main")["dag"]["tasks"]
    return entries


def more_templates(document: Object) -> None:
    document["spec"]["templates"] += [{"name": f"t-{number}"} for number in range(limits.MAX_TEMPLATES)]


def more_entries(document: Object) -> None:
    main(document).extend(
        {"name": f"e-{number}", "template": "merge"} for number in range(limits.MAX_DAG_TASKS)
    )


def more_parameters(document: Object) -> None:
    parameters = trial(document)["inputs"]["parameters"]
    parameters += [{"name": f"p-{number}"} for number in range(limits.MAX_PARAMETERS)]


def more_arguments(document: Object) -> None:
    parameters = main(document)[-1]["arguments"]["parameters"]
    parameters += [{"name": f"p-{number}", "value": "1"} for number in range(limits.MAX_PARAMETERS)]


def large_template(document: Object) -> None:
    trial(document)["container"]["args"] += ["x" * limits.MAX_POD_TEMPLATE_BYTES]


def annotated(document: Object) -> None:
    document["metadata"]["annotations"]["note"] = "x" * limits.MAX_ANNOTATION_BYTES


BREAKS: list[tuple[Callable[[Object], object], str]] = [
    (more_templates, "spec.templates: 207 items, at most 200"),
    (more_entries, "main.dag.tasks: 206 items, at most 200"),
    (more_parameters, "parameters: 503 items, at most 500"),
    (more_arguments, "main.task-0001 parameters: 503 items, at most 500"),
    (large_template, "bytes, at most 131072"),
    (annotated, "metadata.annotations: more than 262144 bytes"),
    (lambda doc: trial(doc).update(name="merge"), "2 items are named 'merge'"),
    (lambda doc: trial(doc).update(name="a" * 129), "is no name"),
    (lambda doc: trial(doc).update(name="a_b"), "'a_b' is no name"),
    (lambda doc: main(doc)[-1].update(name="-a"), "'-a' is no name"),
    (lambda doc: main(doc)[-1].update(name="task-0000"), "2 items are named 'task-0000'"),
    (lambda doc: main(doc)[-1].update(name="1st"), "main.1st: a name that starts with a digit"),
    (lambda doc: main(doc)[-1].update(template="nobody"), "main.task-0001: no template 'nobody'"),
    (lambda doc: main(doc)[-1].update(depends="nobody.Succeeded"), "depends on 'nobody'"),
    (lambda doc: doc["spec"].update(onExit="nobody"), "spec.onExit: no template 'nobody'"),
    (lambda doc: doc["spec"].update(entrypoint="nobody"), "spec.entrypoint: no template 'nobody'"),
    (lambda doc: doc["metadata"].update(name="a" * 64), "more than 63 characters"),
    (lambda doc: doc["metadata"].update(generateName="a" * 59), "more than 63 characters"),
    (
        lambda doc: trial(doc).update(annotations={limits.DISPLAY_NAME_ANNOTATION: "hello #1"}),
        "'hello #1' is no display name",
    ),
    (
        lambda doc: trial(doc).update(annotations={limits.DISPLAY_NAME_ANNOTATION: "a" * 64}),
        "is no display name",
    ),
]


@pytest.mark.parametrize(("damage", "complaint"), BREAKS, ids=[complaint for _, complaint in BREAKS])
def test_every_breach_is_seen(damage: Callable[[Object], object], complaint: str, sound: Object) -> None:
    document = copy.deepcopy(sound)
    damage(document)
    assert [found for found in breaches(document) if complaint in found]  # type: ignore[arg-type]


def test_a_sound_object_has_none(sound: Object) -> None:
    sound["spec"]["templates"][0]["annotations"] = {limits.DISPLAY_NAME_ANNOTATION: "hello-1"}
    assert breaches(sound) == []  # type: ignore[arg-type]
    assert fits(sound)  # type: ignore[arg-type]


@pytest.mark.parametrize("damage", [more_templates, more_entries])
def test_what_does_not_fit(damage: Callable[[Object], object], sound: Object) -> None:
    document = copy.deepcopy(sound)
    damage(document)
    assert not fits(document)  # type: ignore[arg-type]


def test_a_large_object_does_not_fit(sound: Object) -> None:
    room = limits.MAX_WORKFLOW_BYTES - size(sound).total  # type: ignore[arg-type]
    document = copy.deepcopy(sound)
    document["metadata"]["annotations"]["note"] = "x" * (room - len(',"note":""'))
    assert size(document).total == limits.MAX_WORKFLOW_BYTES  # type: ignore[arg-type]
    assert fits(document)  # type: ignore[arg-type]
    document["metadata"]["annotations"]["note"] += "x"
    assert not fits(document)  # type: ignore[arg-type]


def test_more_attempts_make_a_larger_status(sound: Object) -> None:
    document = copy.deepcopy(sound)
    for entry in main(document):
        entry.get("withSequence", {}).update(count="4")
    assert size(document).status > size(sound).status * 1.3  # type: ignore[arg-type]
