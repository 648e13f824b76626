"""Names of runs: made from a key, so that the same request finds the same run, and so that Argo mixes up no
steps.

A node's id in Argo is a 32-bit hash of its name, which begins with the workflow's. A drawn name is drawn
again when two ids are the same; a name that a user's key gives cannot be, so then a DAG entry gets another
name.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence

from argo_harbor.model.base import sha256_hex
from argo_harbor.workflow.nodes import colliding, node_names
from argo_harbor.workflow.objects import DAGTask, Template, Workflow

_DRAWS = 100
_WORD = re.compile(r"[A-Za-z0-9][-A-Za-z0-9]*")


def fresh_key() -> str:
    """A key for a request that came without one: what to repeat with when the answer got lost."""
    return secrets.token_hex(8)


def keyed_name(namespace: str, user: str, key: str) -> str:
    """`run-` and 16 hex: the same for the same user, namespace and key."""
    return f"run-{sha256_hex(chr(0).join((namespace, user, key)).encode())[:16]}"


def collisions(workflow: Workflow, name: str) -> list[tuple[str, ...]]:
    """Groups of node names that Argo would take for one node."""
    return colliding(node_names(workflow, name))


def without_collisions(workflow: Workflow, name: str) -> Workflow:
    """The workflow with DAG entries renamed until no two of its nodes share an id under that name.

    Raises RuntimeError when no renaming helps, which chance does not bring about.
    """
    for round_ in range(_DRAWS):
        groups = collisions(workflow, name)
        if not groups:
            return workflow
        workflow = _rename(workflow, {_entry_of(group[-1], name) for group in groups}, f"-x{round_}")
    raise RuntimeError(f"the steps of {name} cannot be told apart")


def _entry_of(node: str, name: str) -> str:
    """The innermost DAG entry in a node's name: `run.main-entry(0:0)(1)` gives `main-entry`."""
    return node.removeprefix(name).rpartition(".")[2].partition("(")[0]


def _rename(workflow: Workflow, entries: set[str], suffix: str) -> Workflow:
    spec = workflow["spec"]
    templates: Sequence[Template] = [
        {**template, "dag": {**template["dag"], "tasks": _renamed(template["dag"]["tasks"], entries, suffix)}}
        if "dag" in template
        else template
        for template in spec["templates"]
    ]
    return {**workflow, "spec": {**spec, "templates": list(templates)}}


def _renamed(tasks: Sequence[DAGTask], entries: set[str], suffix: str) -> list[DAGTask]:
    def new(word: str) -> str:
        return f"{word}{suffix}" if word in entries else word

    renamed: list[DAGTask] = []
    for task in tasks:
        changed: DAGTask = {**task, "name": new(task["name"])}
        if "depends" in task:
            changed["depends"] = _WORD.sub(lambda found: new(found[0]), task["depends"])
        renamed.append(changed)
    return renamed
