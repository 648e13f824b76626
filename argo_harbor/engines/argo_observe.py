"""Where the tasks of a running workflow are, from its nodes and pods. Pure, to show every case in tests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from argo_harbor.bundle.observed import Observed, Step
from argo_harbor.cluster.nodes import BROKEN, Node
from argo_harbor.cluster.pods import STARTING, Pod
from argo_harbor.cluster.pulls import cause_of
from argo_harbor.cluster.workflows import Workflow
from argo_harbor.workflow import names
from argo_harbor.workflow.builds_only import IMAGE

TRIAL_ROLES = ("trial", "agent", "verify")
_STATES = {
    "": "pending",
    "Pending": "pending",
    "Running": "running",
    "Succeeded": "succeeded",
    "Skipped": "omitted",
    "Omitted": "omitted",
}
_STEP_TEMPLATES = frozenset(
    {
        names.GATE,
        names.MERGE,
        names.SHARD,
        names.NETWORK_BASE,
        names.NETWORK_INTERNET,
        names.NETWORK_BUILD,
    }
)
_NEEDED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9]*)\.")
"""Names in a DAG entry's `depends`."""


def observe(
    workflows: Sequence[Workflow],
    pods: Iterable[Pod],
    *,
    phases: Mapping[str, str] | None = None,
    logins: Sequence[str] = (),
) -> Observed:
    """What a run's workflows (its own, and its parts) and pods say.

    `phases` are what running trial pods say of themselves, by pod uid: `setup`, `agent`, `verifier`. `logins`
    are the Secrets that pods pull images with.
    """
    by_node = {pod.node_id: _Waiting(pod, _waits(pod, logins)) for pod in pods}
    nodes = [node for workflow in workflows for node in workflow.nodes]
    building: set[int] = set()
    details: dict[int, str] = {}
    waiting = _tasks_by_build(workflows)
    for node in _whole_steps(nodes):
        if not names.is_build(node.template):
            continue
        tasks = waiting.get(node.entry, ())
        if node.phase in BROKEN:
            details.update(dict.fromkeys(tasks, f"its image was not built: {node.message}".rstrip(": ")))
        elif not node.over:
            building.update(tasks)
            details.update(dict.fromkeys(tasks, _held_up("building its image", node, nodes, by_node)))
    details.update(_trials(nodes, by_node, phases or {}))
    return Observed(
        details=details,
        building=frozenset(building),
        steps=tuple(_steps(nodes, by_node)),
        complete=all(workflow.knows_nodes for workflow in workflows),
    )


class BuildStep(NamedTuple):
    """One build of a workflow of builds only."""

    state: Literal["ready", "failed", "building", "pending", "unknown"]
    """`unknown` where Argo keeps the workflow's steps where only its server sees them."""
    detail: str = ""
    """What it waits for, or why it ended early."""

    @property
    def over(self) -> bool:
        return self.state in ("ready", "failed")


def observe_builds(
    workflow: Workflow, pods: Iterable[Pod], *, logins: Sequence[str] = ()
) -> dict[int, BuildStep]:
    """Where the builds of a workflow of builds only are, by the place of the image in the build plan."""
    by_node = {pod.node_id: _Waiting(pod, _waits(pod, logins)) for pod in pods}
    nodes = {
        int(node.inputs[IMAGE]): node
        for node in _whole_steps(workflow.nodes)
        if names.is_build(node.template) and node.inputs.get(IMAGE, "").isdecimal()
    }
    found: dict[int, BuildStep] = {}
    for template in workflow.templates:
        for entry in filter(_is_build, _entries(template)):
            for place in _numbers(entry, IMAGE):
                node = nodes.get(place)
                if not workflow.knows_nodes:
                    found[place] = BuildStep("unknown")
                elif node is None:
                    found[place] = _without_step(workflow)
                else:
                    found[place] = _build_step(node, workflow.nodes, by_node)
    return found


def _without_step(workflow: Workflow) -> BuildStep:
    if workflow.over:
        return BuildStep("failed", f"was never begun: {workflow.message or workflow.phase.lower()}")
    waits = workflow.message if workflow.phase in ("", "Pending") else ""
    return BuildStep("pending", waits or "waits for its turn")


def _build_step(node: Node, nodes: Sequence[Node], pods: Mapping[str, _Waiting]) -> BuildStep:
    if node.phase == "Succeeded":
        return BuildStep("ready")
    if node.over:
        return BuildStep("failed", node.message or "was left out: what it waits for failed")
    held_up = _held_up("", node, nodes, pods)
    return BuildStep("pending", held_up) if held_up else BuildStep("building")


class _Waiting(NamedTuple):
    pod: Pod
    reason: str
    """What it waits for; empty when it just starts."""


def _waits(pod: Pod, logins: Sequence[str]) -> str:
    for error in pod.pull_errors():
        return cause_of(error, logins).message
    return pod.waits_for()


def trial_pods(pods: Iterable[Pod]) -> list[Pod]:
    """Running pods of trials: those that can say which phase they are in."""
    return [
        pod for pod in pods if pod.index is not None and pod.attempt is not None and pod.phase == "Running"
    ]


def _tasks_by_build(workflows: Iterable[Workflow]) -> dict[str, set[int]]:
    """Indexes of the tasks that wait for each build, by the name of its entry."""
    found: dict[str, set[int]] = {}
    for workflow in workflows:
        entries = {str(each.get("name", "")): list(_entries(each)) for each in workflow.templates}
        for tasks in entries.values():
            builds = {str(task.get("name", "")) for task in tasks if _is_build(task)}
            for task in tasks:
                called = str(task.get("template", ""))
                inside = entries.get(called, []) if called.startswith(names.CHUNK_PREFIX) else [task]
                for build in builds.intersection(_NEEDED.findall(str(task.get("depends", "")))):
                    found.setdefault(build, set()).update(_indexes(inside))
    return found


def _entries(template: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    dag = template.get("dag")
    listed = dag.get("tasks") if isinstance(dag, dict) else None
    yield from (task for task in listed or () if isinstance(task, dict))


def _is_build(task: Mapping[str, Any]) -> bool:
    return names.is_build(str(task.get("template", "")))


def _indexes(tasks: Iterable[Mapping[str, Any]]) -> Iterator[int]:
    for task in tasks:
        if _is_build(task):
            continue
        yield from _numbers(task, "index")


def _numbers(entry: Mapping[str, Any], name: str) -> Iterator[int]:
    """The value of an entry's parameter, where it has one that is a number."""
    for each in (entry.get("arguments") or {}).get("parameters") or ():
        if each.get("name") == name and str(each.get("value", "")).isdecimal():
            yield int(each["value"])


def _trials(nodes: Iterable[Node], pods: Mapping[str, _Waiting], phases: Mapping[str, str]) -> dict[int, str]:
    details: dict[int, str] = {}
    for node in nodes:
        if not node.is_pod or node.index is None or node.over:
            continue
        if node.template.partition("-")[0] not in TRIAL_ROLES:
            continue
        waiting = pods.get(node.id)
        pod = waiting.pod if waiting else None
        if pod is not None and pod.uid in phases and pod.phase == "Running":
            details[node.index] = phases[pod.uid]
        elif node.phase == "Running":
            details.setdefault(node.index, "running")
        else:
            details.setdefault(node.index, _pending(node, waiting))
    return details


def _pending(node: Node, waiting: _Waiting | None) -> str:
    reason = (waiting.reason if waiting else "") or node.message
    if reason in STARTING or (waiting is not None and not reason):
        return "starting"
    return f"pending: {reason}" if reason else "pending"


def _held_up(doing: str, group: Node, nodes: Iterable[Node], pods: Mapping[str, _Waiting]) -> str:
    """What is being done, and what its pod waits for if it does not run."""
    members = {group.id, *group.children}
    for node in nodes:
        if node.is_pod and node.id in members and not node.over and node.phase != "Running":
            pending = _pending(node, pods.get(node.id))
            if doing:
                return f"{doing}: {pending}"
            return "" if pending == "pending" else pending.removeprefix("pending: ")
    return doing


def _whole_steps(nodes: Sequence[Node]) -> Iterator[Node]:
    """Nodes that stand for a whole DAG entry: of one that is retried the group, not each try."""
    tries = {child for node in nodes if node.type == "Retry" for child in node.children}
    return (node for node in nodes if node.id not in tries)


def _steps(nodes: Sequence[Node], pods: Mapping[str, _Waiting]) -> Iterator[Step]:
    for node in sorted(_whole_steps(nodes), key=lambda node: (node.started, node.name)):
        if node.template in _STEP_TEMPLATES or names.is_build(node.template):
            state = "failed" if node.phase in BROKEN else _STATES.get(node.phase, "pending")
            detail = node.message if state == "failed" else ""
            if state in ("pending", "running"):
                detail = _held_up("", node, nodes, pods)
            yield Step(names.MERGE if node.template == names.MERGE else node.entry, state, detail)
