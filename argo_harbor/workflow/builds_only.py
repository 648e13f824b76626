"""A build plan as Argo Workflows: nothing but builds, behind the same fence as those of a run.

    network-base, network-internet, network-build → build-<task>, each image once

It is no run: without a run's plan among its labels, no command takes it for one. There is no merge, since
each build leaves its record in the store. What is too large for one Workflow becomes several that hold one
lock, so that they run one after another and the cap stays exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from argo_harbor.model.build_plan import BuildPlan
from argo_harbor.workflow import names, network
from argo_harbor.workflow.assemble import DESCRIPTION_ANNOTATION, TITLE_ANNOTATION, pod_labels, spec_of
from argo_harbor.workflow.build import Secrets, entry_name, image_template, templates_by_secrets
from argo_harbor.workflow.checks import check_builds
from argo_harbor.workflow.chunks import CHUNK_ENTRIES
from argo_harbor.workflow.entries import dag_template, succeeded
from argo_harbor.workflow.limits import MAX_DAG_TASKS, MAX_WORKFLOW_BYTES, breaches, fits, size
from argo_harbor.workflow.objects import DAGTask, Template, Workflow
from argo_harbor.workflow.text import inputs, parameter, prose

IMAGE = "image"
"""Parameter of a build: the place of its image in the build plan."""
_QUEUE_SECONDS = 48 * 3600
"""What pods of builds may wait for a node, all together."""
_PLAIN_STEM = "image"


def compile_builds(plan: BuildPlan) -> list[Workflow]:
    """The Workflows that build the plan's images. Pure.

    Raises: Refused with every finding about the platform, or for more sets of build secrets than a workflow
    holds; ValueError for a plan without an image.
    """
    if not plan.images:
        raise ValueError("there is nothing to build")
    check_builds(plan)
    compiler = _Compiler(plan)
    number = 1
    while True:
        workflows = [compiler.workflow(share) for share in _shares(len(plan.images), number)]
        if number > 1:
            workflows = [_locked(workflow, plan) for workflow in workflows]
        if all(fits(workflow) for workflow in workflows):
            break
        worst = max(size(workflow).total for workflow in workflows)
        number = max(number + 1, -(-number * worst // MAX_WORKFLOW_BYTES))
    for workflow in workflows:
        if broken := breaches(workflow):
            raise AssertionError(f"emitted what Argo does not take: {broken}")
    return workflows


class _Compiler:
    """What the workflows of one plan share."""

    def __init__(self, plan: BuildPlan) -> None:
        self._plan = plan
        self._templates = templates_by_secrets(planned.image.secrets for planned in plan.images)
        self._fence = network.fence(network.Ground.of_builds(plan), builds=True)
        self._ready = succeeded(template["name"] for template in self._fence)
        taken: set[str] = set()
        self._names = [
            entry_name(_dag_name(planned.task), planned.side, planned.image.key, taken)
            for planned in plan.images
        ]

    def workflow(self, images: range) -> Workflow:
        """The Workflow of the images at these places."""
        plan = self._plan
        labels = {names.BUILDS_LABEL: names.builds_label(plan)}
        rounds = math.ceil(len(images) / plan.cap)
        taskset, count = prose(plan.taskset.partition("#")[0]), len(images)
        return {
            "apiVersion": names.API_VERSION,
            "kind": "Workflow",
            "metadata": {
                "generateName": "build-",
                "namespace": plan.platform.namespace,
                "labels": labels,
                "annotations": {
                    TITLE_ANNOTATION: f"{taskset} · {count} {'image' if count == 1 else 'images'}",
                    DESCRIPTION_ANNOTATION: "builds images, runs nothing",
                    names.BUILDS_LABEL: plan.content_digest(),
                    names.TASKSET_ANNOTATION: prose(plan.taskset),
                },
            },
            "spec": {
                "entrypoint": names.MAIN,
                **spec_of(
                    plan.platform,
                    [*self._graph(images), *self._fence, *self._builds(images)],
                    cap=plan.cap,
                    seconds=rounds * plan.build_seconds + _QUEUE_SECONDS,
                    labels=pod_labels(labels),
                ),
            },
        }

    def _graph(self, images: range) -> list[Template]:
        first: list[DAGTask] = [
            {"name": template["name"], "template": template["name"]} for template in self._fence
        ]
        if len(first) + len(images) <= MAX_DAG_TASKS:
            return [
                dag_template(names.MAIN, [*first, *(self._entry(place, self._ready) for place in images)])
            ]
        chunks = [images[start : start + CHUNK_ENTRIES] for start in range(0, len(images), CHUNK_ENTRIES)]
        called: list[DAGTask] = [
            {"name": names.chunk_name(number), "template": names.chunk_name(number), "depends": self._ready}
            for number in range(len(chunks))
        ]
        inner = [
            dag_template(names.chunk_name(number), [self._entry(place, "") for place in chunk])
            for number, chunk in enumerate(chunks)
        ]
        return [dag_template(names.MAIN, [*first, *called]), *inner]

    def _entry(self, place: int, depends: str) -> DAGTask:
        template = self._templates[self._plan.images[place].image.secrets]
        entry: DAGTask = {"name": self._names[place], "template": template}
        if depends:
            entry["depends"] = depends
        entry["arguments"] = {"parameters": [parameter(IMAGE, str(place))]}
        return entry

    def _builds(self, images: range) -> list[Template]:
        used: set[Secrets] = {self._plan.images[place].image.secrets for place in images}
        return [self._build(name, secrets) for secrets, name in self._templates.items() if secrets in used]

    def _build(self, name: str, secrets: Secrets) -> Template:
        plan = self._plan
        return image_template(
            plan.platform,
            ["--builds", plan.content_digest(), "--image", inputs(IMAGE)],
            name=name,
            workflow_uid="{{workflow.uid}}",
            parameters=[{"name": IMAGE}],
            labels={},
            seconds=plan.build_seconds,
            tries=plan.platform.workflow.infra_retries,
            secrets=secrets,
        )


def _locked(workflow: Workflow, plan: BuildPlan) -> Workflow:
    lock = f"argo-harbor-builds-{names.builds_label(plan)}"
    return {**workflow, "spec": {**workflow["spec"], "synchronization": {"mutexes": [{"name": lock}]}}}


def _shares(images: int, number: int) -> Sequence[range]:
    """The places of all images as so many runs of about equal length."""
    cuts = [images * share // number for share in range(number + 1)]
    return [range(start, end) for start, end in pairwise(cuts) if end > start]


def _dag_name(task: str) -> str:
    """A task's name as an entry's name can hold it."""
    kept = "".join(char if char.isascii() and char.isalnum() else "-" for char in task.rpartition("/")[2])
    return kept.strip("-") or _PLAIN_STEM
