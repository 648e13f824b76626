"""DAG entries of trials, and what entries wait for. An entry carries only what differs between tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from argo_harbor.workflow.objects import DAGTask, Template
from argo_harbor.workflow.tasks import PlannedTask
from argo_harbor.workflow.text import parameter


def dag_template(name: str, tasks: Sequence[DAGTask]) -> Template:
    # With failFast one failed task would keep all others from starting.
    return {"name": name, "dag": {"failFast": False, "tasks": list(tasks)}}


def trial_entry(task: PlannedTask, template: DAGTask, *, attempts: int, depends: str) -> DAGTask:
    """The entry of a task: `template` names the template and brings the arguments of the pod's shape, if
    any."""
    entry: DAGTask = {"name": task.dag_name, "template": template["template"]}
    if depends:
        entry["depends"] = depends
    arguments = [
        parameter("index", str(task.index)),
        *(
            parameter("image" if side == "agent" else "verifier-image", image.reference)
            for side, image in task.images
            if side in ("agent", "verifier")
        ),
    ]
    if attempts > 1:
        arguments.append({"name": "attempt", "value": "{{item}}"})
        entry["withSequence"] = {"count": str(attempts)}
    entry["arguments"] = {"parameters": [*arguments, *template.get("arguments", {}).get("parameters", [])]}
    return entry


def succeeded(names: Iterable[str]) -> str:
    """`depends` on every one of them having succeeded; empty for none."""
    return " && ".join(f"{name}.Succeeded" for name in names)


def ended(name: str) -> str:
    """`depends` on a step having run to whatever end; not met by one that never started."""
    return f"{name}.Succeeded || {name}.Failed || {name}.Errored"


def settled(names: Iterable[str]) -> str:
    """`depends` on every one of them having ended or being out of the question, as after a failed build."""
    return " && ".join(f"({ended(name)} || {name}.Omitted)" for name in names)
