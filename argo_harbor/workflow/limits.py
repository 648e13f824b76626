"""Everything that Argo Workflows does not take, as named numbers with their reasons, and the check of an
object.

Most of these limits live in the resource definitions of v4 or in the controller, where a breach shows only
when a run is submitted, or hangs. So the compiler decides by them (`graph`, `split`, `compile`) and checks
what it made.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from argo_harbor.workflow.nodes import NodeCounter, NodeCounts
from argo_harbor.workflow.objects import Template, Workflow

MAX_TEMPLATES = 200
"""`spec.templates`, by the definitions of Argo v4."""
MAX_DAG_TASKS = 200
"""`dag.tasks` of one template, likewise."""
MAX_PARAMETERS = 500
"""`inputs.parameters` and `arguments.parameters`, likewise."""
NAME = re.compile(r"[a-zA-Z0-9][-a-zA-Z0-9]{0,127}")
"""Names of templates and DAG entries, likewise: at most 128 characters."""
DISPLAY_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9-.]{0,61}[a-zA-Z0-9]")
"""The annotation `workflows.argoproj.io/display-name` of a template. With any other value a workflow with a
retry strategy stays Running for ever, and lint accepts it; so none is written that does not match."""
DISPLAY_NAME_ANNOTATION = "workflows.argoproj.io/display-name"
MAX_WORKFLOW_NAME = 63
"""Argo copies the name into a label of every pod."""
GENERATED_SUFFIX = 11
"""What a name gets appended at most: `-` and a Unix time for a cron run, five letters otherwise."""
MAX_POD_TEMPLATE_BYTES = 128 * 1024
"""A template travels to its pod in an environment variable, an argument on a command line; Linux takes 128
KiB. Larger ones go through a ConfigMap that the controller may often not create."""
MAX_POD_SHAPES = 150
"""Trial templates in one workflow; more become parameters. Leaves room for chunks and for the fixed
templates."""
MAX_ANNOTATION_BYTES = 256 * 1024
"""All annotations of one object together, by Kubernetes."""

MAX_WORKFLOW_BYTES = 800 * 1024
"""Specification and compressed status together. Argo gives a workflow up when its whole JSON passes 1 MiB;
the rest is for longer names of workflows and messages of nodes."""
SIZED_TRIES = 2
"""The status is sized for so many tries of everything: a bad hour of the cluster must not end a run."""

# Calibrated on gzipped, base64-coded statuses of realistic nodes, as Argo stores them; a test repeats it.
# Constants and no compressor, because another zlib would give another size, and the same plan must split
# alike everywhere.
_POD_NODE_BYTES = 125
_GROUP_NODE_BYTES = 75
_NAME_LETTER_BYTES = 1.2
# Each pod stands once more in `status.taskResultsCompletionStatus`, which Argo does not compress, under its
# node's id: the workflow's name and up to ten digits.
_TASK_RESULT_BYTES = 20 + len('"-4294967295":false,')


class Size(NamedTuple):
    """Bytes of a workflow as Argo stores it."""

    spec: int
    """JSON of the object as emitted."""
    status: int
    """Estimate of the compressed status after `SIZED_TRIES` tries of everything."""

    @property
    def total(self) -> int:
        return self.spec + self.status


def size(workflow: Workflow) -> Size:
    spec = workflow["spec"]
    counter = NodeCounter(spec["templates"], tries=SIZED_TRIES)
    called = [spec["entrypoint"], *([spec["onExit"]] if "onExit" in spec else [])]
    return Size(json_bytes(workflow), status_bytes(counter.of(*called)))


def json_bytes(data: object) -> int:
    """Length of compact JSON in UTF-8."""
    return len(json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode())


def status_bytes(nodes: NodeCounts) -> int:
    pods = nodes.pods * (_POD_NODE_BYTES + _TASK_RESULT_BYTES)
    return int(pods + nodes.groups * _GROUP_NODE_BYTES + nodes.letters * _NAME_LETTER_BYTES)


def fits(workflow: Workflow) -> bool:
    """Whether the workflow can be one object: the limits that grow with the number of tasks."""
    templates = workflow["spec"]["templates"]
    return (
        len(templates) <= MAX_TEMPLATES
        and all(len(template.get("dag", {}).get("tasks", ())) <= MAX_DAG_TASKS for template in templates)
        and size(workflow).total <= MAX_WORKFLOW_BYTES
    )


def breaches(workflow: Workflow) -> list[str]:
    """Every limit but the size of the whole that the object breaks, as `where: what`; empty for what the
    compiler emits."""
    templates = workflow["spec"]["templates"]
    found = list(
        _list_breaches("spec.templates", [each.get("name", "") for each in templates], MAX_TEMPLATES)
    )
    known = {template["name"] for template in templates}
    for template in templates:
        found.extend(_template_breaches(template, known))
    for field in ("entrypoint", "onExit"):
        name = workflow["spec"].get(field)
        if name is not None and name not in known:
            found.append(f"spec.{field}: no template {name!r}")
    metadata = workflow["metadata"]
    longest = metadata.get("name") or metadata.get("generateName", "") + "x" * 5
    if len(longest) > MAX_WORKFLOW_NAME:
        found.append(f"metadata: {longest!r} has more than {MAX_WORKFLOW_NAME} characters")
    annotations = metadata.get("annotations", {})
    if (
        sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
        > MAX_ANNOTATION_BYTES
    ):
        found.append(f"metadata.annotations: more than {MAX_ANNOTATION_BYTES} bytes")
    return found


def _template_breaches(template: Template, known: set[str]) -> Iterator[str]:
    where = template["name"]
    entries = template.get("dag", {}).get("tasks", [])
    yield from _list_breaches(f"{where}.dag.tasks", [entry["name"] for entry in entries], MAX_DAG_TASKS)
    names = {entry["name"] for entry in entries}
    for entry in entries:
        place = f"{where}.{entry['name']}"
        if entry["template"] not in known:
            yield f"{place}: no template {entry['template']!r}"
        for waited in re.findall(r"([-\w]+)\.[A-Z]", entry.get("depends", "")):
            if waited not in names:
                yield f"{place}: depends on {waited!r}, which is not in this DAG"
        if "depends" in entry and entry["name"][0].isdigit():
            yield f"{place}: a name that starts with a digit may depend on nothing"
        yield from _parameter_breaches(place, entry.get("arguments", {}).get("parameters", []))
    yield from _parameter_breaches(where, template.get("inputs", {}).get("parameters", []))
    display = template.get("annotations", {}).get(DISPLAY_NAME_ANNOTATION)
    if display is not None and not DISPLAY_NAME.fullmatch(display):
        yield f"{where}: {display!r} is no display name"
    if "dag" not in template and (length := json_bytes(template)) > MAX_POD_TEMPLATE_BYTES:
        yield f"{where}: {length} bytes, at most {MAX_POD_TEMPLATE_BYTES}"


def _list_breaches(where: str, listed: Sequence[str], most: int) -> Iterator[str]:
    if len(listed) > most:
        yield f"{where}: {len(listed)} items, at most {most}"
    for name, count in Counter(listed).items():
        if count > 1:
            yield f"{where}: {count} items are named {name!r}"
        if not NAME.fullmatch(name):
            yield f"{where}: {name!r} is no name"


def _parameter_breaches(where: str, parameters: Sequence[Mapping[str, object]]) -> Iterator[str]:
    names = [str(each["name"]) for each in parameters]
    yield from _list_breaches(f"{where} parameters", names, MAX_PARAMETERS)
