"""Parts of a run too large for one Workflow: their names, their objects, and where they stand.

A step of the parent creates each part and follows it; whoever repeats that step finds the part by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argo_harbor.cluster.client import Cluster, Json
from argo_harbor.cluster.errors import AlreadyExists
from argo_harbor.cluster.paths import workflows as path_of
from argo_harbor.cluster.workflows import Workflow, create_workflow, find_workflow
from argo_harbor.errors import PlatformError
from argo_harbor.model.base import sha256_hex
from argo_harbor.workflow import names
from argo_harbor.workflow.limits import MAX_WORKFLOW_NAME
from argo_harbor.workflow.nodes import colliding, node_names

_DRAWS = 100


def part_name(run: str, number: int, part: Mapping[str, Any]) -> str:
    """Name of a run's part: always the same, and one under which Argo takes no two of its steps for one."""
    for draw in range(_DRAWS):
        name = _named(run, f"-{number:03}" + (f"-{draw}" if draw else ""))
        if not colliding(node_names(part, name)):  # type: ignore[arg-type]  # read back from what we emitted
            return name
    raise RuntimeError(f"the steps of part {number:03} cannot be told apart under any name")


def part_object(part: Mapping[str, Any], *, name: str, run: str, parent_uid: str, namespace: str) -> Json:
    """The part as it is created: named, told its run, and gone when the parent goes."""
    metadata = {key: value for key, value in part["metadata"].items() if key != "generateName"}
    owner = {
        "apiVersion": names.API_VERSION,
        "kind": "Workflow",
        "name": run,
        "uid": parent_uid,
        "controller": True,
    }
    values = {names.RUN_PARAMETER: run, names.WORKFLOW_PARAMETER: parent_uid}
    parameters = [{"name": key, "value": value} for key, value in values.items()]
    return {
        **part,
        "metadata": {
            **metadata,
            "name": name,
            "namespace": namespace,
            "labels": {**metadata.get("labels", {}), names.RUN_LABEL: run},
            "ownerReferences": [owner],
        },
        "spec": {**part["spec"], "arguments": {"parameters": parameters}},
    }


def find_or_create(cluster: Cluster, body: Json) -> Workflow:
    """The part of that name, created when it is not there.

    Raises: PlatformError `run_id_reused` for a workflow of that name that is none of this run; ClusterError.
    """
    name, [owner] = body["metadata"]["name"], body["metadata"]["ownerReferences"]
    found = find_workflow(cluster, name)
    if found is None:
        try:
            found = create_workflow(cluster, body)
        except AlreadyExists:
            found = Workflow(cluster.get(path_of(cluster.namespace, name)))
    if owner["uid"] not in found.owners:
        raise PlatformError(
            "run_id_reused",
            f"the workflow {name} is there and belongs to another run than {owner['name']}",
            "delete it, or submit the run under another name",
        )
    return found


def _named(run: str, suffix: str) -> str:
    room = MAX_WORKFLOW_NAME - len(suffix)
    if len(run) <= room:
        return run + suffix
    digest = sha256_hex(run.encode())[:8]
    return f"{run[: room - 9].rstrip('-.')}-{digest}{suffix}"
