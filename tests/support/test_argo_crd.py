"""The checks against Argo's resource definitions take what just fits and refuse everything else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.support import argo, argo_crd, argo_rules
from tests.support.fixtures_argo import CrdErrors
from tests.support.good_workflow import good_workflow

pytestmark = pytest.mark.lint

Document = dict[str, Any]


def template(document: Document, name: str) -> Document:
    return next(found for found in document["spec"]["templates"] if found["name"] == name)


def first_task(document: Document) -> Document:
    """The entry of ``main`` that depends on the other."""
    return next(task for task in template(document, "main")["dag"]["tasks"] if task["name"] == "first")


def with_tasks(count: int) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        tasks = template(document, "main")["dag"]["tasks"]
        build = tasks[0]
        tasks[:] = [build | {"name": f"task-{index}"} for index in range(count)]

    return change


def with_templates(count: int) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        templates = document["spec"]["templates"]
        templates += [
            template(document, "merge") | {"name": f"t-{index}"} for index in range(count - len(templates))
        ]

    return change


def with_parameters(count: int) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        parameters = template(document, "work")["inputs"]["parameters"]
        parameters += [{"name": f"p-{index}", "value": "x"} for index in range(count - len(parameters))]

    return change


def test_the_schema_takes_a_good_workflow(workflow_crd: CrdErrors) -> None:
    assert workflow_crd(good_workflow()) == []


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(with_tasks(200), id="200 tasks"),
        pytest.param(with_templates(200), id="200 templates"),
        pytest.param(with_parameters(500), id="500 parameters"),
        pytest.param(lambda it: template(it, "work").update(name="w" * 128), id="a name of 128"),
        pytest.param(lambda it: it["metadata"].update(name="r" * 63), id="a workflow name of 63"),
        pytest.param(lambda it: it["metadata"]["labels"].update(empty=""), id="an empty label"),
        pytest.param(lambda it: it["spec"].update(suspend=True), id="suspended"),
    ],
)
def test_the_schema_takes_what_just_fits(change: Callable[[Document], None], workflow_crd: CrdErrors) -> None:
    document = good_workflow()
    change(document)
    assert workflow_crd(document) == []


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        pytest.param(with_tasks(201), "tasks: .* is too long", id="201 tasks"),
        pytest.param(with_templates(201), "templates: .* is too long", id="201 templates"),
        pytest.param(with_parameters(501), "parameters: .* is too long", id="501 parameters"),
        pytest.param(
            lambda it: it["spec"].update(onexit="merge"), "'onexit' was unexpected", id="unknown field"
        ),
        pytest.param(
            lambda it: template(it, "work")["container"].update(restartpolicy="Always"),
            r"templates\[1\].container: .*'restartpolicy' was unexpected",
            id="unknown field of a container",
        ),
        pytest.param(lambda it: it.update(status={}), "'status' was unexpected", id="status"),
        pytest.param(lambda it: it.update(kind="Pod"), "is none of Workflow", id="another kind"),
        pytest.param(lambda it: it.update(apiVersion="v1"), "not a Workflow", id="another version"),
        pytest.param(lambda it: it.pop("spec"), "'spec' is a required property", id="no spec"),
        pytest.param(
            lambda it: it["spec"].update(parallelism=0), "less than the minimum", id="parallelism 0"
        ),
        pytest.param(
            lambda it: it["spec"].update(parallelism=2**63), "greater than the maximum", id="64 bits"
        ),
        pytest.param(
            lambda it: it["spec"].update(parallelism="20"), "not of type 'integer'", id="text for number"
        ),
        pytest.param(
            lambda it: template(it, "work").update(activeDeadlineSeconds=1.5),
            "not valid under any",
            id="a fraction",
        ),
        pytest.param(
            lambda it: template(it, "work").update(name="a_b"), "does not match", id="template name"
        ),
        pytest.param(
            lambda it: template(it, "work").update(name="work\n"), "does not match", id="line feed in a name"
        ),
        pytest.param(lambda it: template(it, "work").update(name="w" * 129), "too long", id="a name of 129"),
        pytest.param(lambda it: first_task(it).update(name="#1"), "does not match", id="task name"),
        pytest.param(
            lambda it: template(it, "work")["container"]["resources"]["limits"].update(memory="1 GB"),
            "memory: .* does not match",
            id="a quantity",
        ),
        pytest.param(
            lambda it: template(it, "work")["retryStrategy"].update(retryPolicy="Never"),
            "not one of",
            id="an enum",
        ),
        pytest.param(
            lambda it: first_task(it).update(dependencies=["build-x"]),
            "cannot use both 'depends' and 'dependencies'",
            id="depends and dependencies",
        ),
        pytest.param(
            lambda it: first_task(it).update(continueOn={"failed": True}),
            "cannot use 'continueOn' when using 'depends'",
            id="continueOn with depends",
        ),
        pytest.param(
            lambda it: first_task(it).update(name="1st"), "cannot begin with a digit", id="digit with depends"
        ),
        pytest.param(
            lambda it: template(it, "main").update(activeDeadlineSeconds=5),
            "only valid for leaf",
            id="dag deadline",
        ),
        pytest.param(
            lambda it: template(it, "main").update(timeout="5s"), "cannot be applied", id="dag timeout"
        ),
        pytest.param(
            lambda it: template(it, "work").update(suspend={}),
            "at most one template type",
            id="two template types",
        ),
        pytest.param(
            lambda it: template(it, "work")["outputs"]["artifacts"][0].update(http={"url": "u"}),
            "at most one artifact location",
            id="two artifact locations",
        ),
        pytest.param(
            lambda it: first_task(it)["withSequence"].update(end="3"),
            "only one of count or end",
            id="count and end",
        ),
        pytest.param(
            lambda it: it["spec"]["templates"].append(
                {
                    "name": "r",
                    "resource": {
                        "action": "get",
                        "manifest": "m",
                        "manifestFrom": {"artifact": {"name": "a"}},
                    },
                }
            ),
            "only one of manifest or manifestFrom",
            id="two manifests",
        ),
        pytest.param(
            lambda it: it["spec"].update(
                metrics={
                    "prometheus": [
                        {
                            "name": "m",
                            "help": "h",
                            "gauge": {"realtime": True, "value": "{{resourcesDuration.cpu}}"},
                        }
                    ]
                }
            ),
            "cannot be used in real-time gauges",
            id="realtime gauge",
        ),
        pytest.param(
            lambda it: template(it, "work")["container"].update(
                env=[{"name": "A"}, {"name": "A", "value": "x"}]
            ),
            "container.env: 2 items with name 'A'",
            id="one variable twice",
        ),
        pytest.param(
            lambda it: template(it, "work")["container"]["ports"].append(
                {"containerPort": 80, "protocol": "TCP"}
            ),
            "2 items with containerPort 80, protocol 'TCP'",
            id="one key by default, one written",
        ),
        pytest.param(lambda it: it["metadata"].update(uid="1"), "'uid' is unknown", id="metadata field"),
        pytest.param(lambda it: it["metadata"].pop("generateName"), "neither name", id="no name"),
        pytest.param(
            lambda it: it["metadata"].update(name="Run_1"), "'Run_1' is no name", id="workflow name"
        ),
        pytest.param(lambda it: it["metadata"].update(name="r" * 64), "at most 63", id="workflow name of 64"),
        pytest.param(
            lambda it: it["metadata"].update(generateName="r" * 59),
            "at most 63",
            id="a prefix that leaves no room",
        ),
        pytest.param(
            lambda it: it["metadata"]["labels"].update(user="a b"),
            "'a b' is no label value",
            id="label value",
        ),
        pytest.param(
            lambda it: it["metadata"]["labels"].update({"a/b/c": "x"}), "no qualified name", id="label key"
        ),
        pytest.param(
            lambda it: it["metadata"]["annotations"].update(big="x" * 2**18),
            "more than 262144",
            id="big annotation",
        ),
    ],
)
def test_the_schema_refuses(
    change: Callable[[Document], object], complaint: str, workflow_crd: CrdErrors
) -> None:
    document = good_workflow()
    change(document)
    [finding] = workflow_crd(document)
    assert re.search(complaint, finding)


@pytest.mark.parametrize("kind", argo_crd.KINDS)
def test_every_rule_of_the_definitions_is_known(kind: str, workflow_crd: CrdErrors) -> None:
    definition = argo_crd.load_schema(argo.ARGO, kind, say=print)
    assert set(argo_crd.cel_rules(definition)) == set(argo_rules.RULES)


SIDECAR = {
    "name": "sandbox",
    "image": "{{inputs.parameters.index}}",
    "restartPolicy": "Always",
    "resources": {"limits": {"memory": "{{inputs.parameters.index}}"}},
    "securityContext": {"capabilities": {"drop": ["NET_RAW"]}},
}


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(
            {"initContainers": [SIDECAR], "volumes": [{"name": "v", "emptyDir": {}}]}, id="a sidecar"
        ),
        pytest.param(
            {
                "$setElementOrder/initContainers": [{"name": "init"}, {"name": "sandbox"}],
                "initContainers": [SIDECAR],
            },
            id="after init",
        ),
        pytest.param({"containers": [{"name": "main", "resources": {"requests": {"cpu": 1}}}]}, id="main"),
        pytest.param({"terminationGracePeriodSeconds": 120, "runtimeClassName": "gvisor"}, id="patch only"),
    ],
)
@pytest.mark.parametrize("kind", argo_crd.KINDS)
def test_pod_patch_is_taken(pod: Document, kind: str, workflow_crd: CrdErrors) -> None:
    assert workflow_crd(as_kind(kind, with_patch(pod))) == []


@pytest.mark.parametrize(
    ("pod", "complaint"),
    [
        pytest.param({"initContainer": []}, "'initContainer' was unexpected", id="part of a pod"),
        pytest.param(
            {"initContainers": [SIDECAR | {"restartpolicy": "Always"}]},
            r"templates\[1\].podSpecPatch: initContainers\[0\]: .*'restartpolicy' was unexpected",
            id="field of a container",
        ),
        pytest.param(
            {"initContainers": [SIDECAR | {"resources": {"limits": {"memory": "1 GB"}}}]}, "GB", id="quantity"
        ),
        pytest.param(
            {"terminationGracePeriodSeconds": "120"}, "not of type 'integer'", id="text for a number"
        ),
    ],
)
@pytest.mark.parametrize("kind", argo_crd.KINDS)
def test_pod_patch_is_refused(pod: Document, complaint: str, kind: str, workflow_crd: CrdErrors) -> None:
    [finding] = workflow_crd(as_kind(kind, with_patch(pod)))
    assert re.search(complaint, finding)


def test_pod_patch_that_is_no_yaml_is_refused(workflow_crd: CrdErrors) -> None:
    document = good_workflow()
    document["spec"]["podSpecPatch"] = "{"
    [finding] = workflow_crd(document)
    assert finding.startswith("podSpecPatch: ")


def with_patch(pod: Document) -> Document:
    document = good_workflow()
    template(document, "work")["podSpecPatch"] = json.dumps(pod)
    return document


def as_kind(kind: str, workflow: Document) -> Document:
    """The same workflow, wrapped as an object of ``kind``."""
    spec = workflow["spec"]
    if kind == "CronWorkflow":
        spec = {"schedules": ["0 3 * * *"], "workflowSpec": spec}
    return workflow | {"kind": kind, "spec": spec}
