"""The nodes that Argo will make of a workflow: how many, for its status's size, and their names, for
collisions.

A node's id is the FNV-1a hash of its name, 32 bits, and Argo takes two nodes with one id for one: the
second never runs and looks finished. `runs submit` therefore chooses a workflow name under which no two
names collide.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from argo_harbor.workflow import names
from argo_harbor.workflow.objects import DAGTask, Template, Workflow

_FNV_OFFSET = 0x811C9DC5
_FNV_PRIME = 0x01000193


class NodeCounts(NamedTuple):
    """Nodes of a workflow, or of one template in it."""

    pods: int = 0
    groups: int = 0
    """Nodes without a pod: DAGs, sequences, retries."""
    letters: int = 0
    """Letters of all nodes' names together, as far as they differ between tasks."""

    def plus(self, other: NodeCounts) -> NodeCounts:
        return NodeCounts(self.pods + other.pods, self.groups + other.groups, self.letters + other.letters)

    def times(self, number: int) -> NodeCounts:
        return NodeCounts(self.pods * number, self.groups * number, self.letters * number)


class NodeCounter:
    """Counts nodes when every pod is tried `tries` times where it may be retried at all."""

    def __init__(self, templates: Iterable[Template], *, tries: int) -> None:
        self._templates = {template["name"]: template for template in templates}
        self._tries = tries
        self._known: dict[str, NodeCounts] = {}

    def of(self, *called: str) -> NodeCounts:
        """Nodes below templates that are called by name: the entrypoint, the exit handler."""
        total = NodeCounts()
        for name in called:
            total = total.plus(self._template(name))
        return total

    def entry(self, entry: DAGTask) -> NodeCounts:
        """Nodes of one DAG entry."""
        inner = self._template(entry["template"])
        # A chunk's name is alike in all of its nodes, and compresses to nothing.
        own = 0 if entry["name"].startswith(names.CHUNK_PREFIX) else len(entry["name"])
        inner = inner._replace(letters=inner.letters + (inner.pods + inner.groups) * own)
        count = _sequence(entry)
        return inner if count is None else inner.times(count).plus(NodeCounts(groups=1, letters=own))

    def _template(self, name: str) -> NodeCounts:
        if name not in self._known:
            template = self._templates[name]
            total = NodeCounts(groups=1)
            if "dag" in template:
                for entry in template["dag"]["tasks"]:
                    total = total.plus(self.entry(entry))
            else:
                tries = min(self._tries, _tries(template))
                total = (
                    NodeCounts(pods=tries, groups=1) if "retryStrategy" in template else NodeCounts(pods=1)
                )
            self._known[name] = total
        return self._known[name]


def node_names(workflow: Workflow, workflow_name: str) -> list[str]:
    """The name of every node that can come to be when the workflow runs under that name, all tries
    included."""
    spec = workflow["spec"]
    templates = {template["name"]: template for template in spec["templates"]}
    found = list(_below(templates, spec["entrypoint"], workflow_name))
    if "onExit" in spec:
        found.extend(_below(templates, spec["onExit"], f"{workflow_name}.onExit"))
    return found


def node_id(name: str, workflow_name: str) -> str:
    """Argo's id of a node: the workflow's own name for the first, name and hash for the others."""
    return workflow_name if name == workflow_name else f"{workflow_name}-{fnv32a(name)}"


def colliding(node_names: Iterable[str]) -> list[tuple[str, ...]]:
    """Groups of names that share a hash; empty when all is well."""
    by_hash: defaultdict[int, list[str]] = defaultdict(list)
    for name in node_names:
        by_hash[fnv32a(name)].append(name)
    return [tuple(group) for group in by_hash.values() if len(group) > 1]


def fnv32a(text: str) -> int:
    value = _FNV_OFFSET
    for byte in text.encode():
        value = (value ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return value


def _below(templates: Mapping[str, Template], template_name: str, node: str) -> Iterator[str]:
    template = templates[template_name]
    yield node
    if "dag" in template:
        for entry in template["dag"]["tasks"]:
            yield from _of_entry(templates, entry, f"{node}.{entry['name']}")
    elif "retryStrategy" in template:
        yield from (f"{node}({number})" for number in range(_tries(template)))


def _of_entry(templates: Mapping[str, Template], entry: DAGTask, node: str) -> Iterator[str]:
    count = _sequence(entry)
    if count is None:
        yield from _below(templates, entry["template"], node)
        return
    yield node
    for item in range(count):
        yield from _below(templates, entry["template"], f"{node}({item}:{item})")


def _sequence(entry: DAGTask) -> int | None:
    sequence = entry.get("withSequence")
    return None if sequence is None else int(sequence["count"])


def _tries(template: Template) -> int:
    return int(template.get("retryStrategy", {}).get("limit", 0)) + 1
