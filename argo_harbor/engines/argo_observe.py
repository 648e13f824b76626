"""Where the tasks of a running workflow are, from its nodes and pods. Pure, to show every case in tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from argo_harbor.bundle.observed import Observed, Step
from argo_harbor.cluster.nodes import BROKEN, Node
from argo_harbor.cluster.pods import Pod
from argo_harbor.cluster.workflows import Workflow
from argo_harbor.model.plan import RunPlan
from argo_harbor.workflow import names
from argo_harbor.workflow.tasks import planned_tasks

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
    {names.BUILD, names.GATE, names.MERGE, names.SHARD, names.NETWORK_BASE, names.NETWORK_INTERNET}
)
_GROUPS = frozenset({"Retry", "Pod"})


def observe(
    workflows: Sequence[Workflow],
    pods: Iterable[Pod],
    plan: RunPlan,
    *,
    phases: Mapping[str, str] | None = None,
) -> Observed:
    """What a run's workflows (its own, and its parts) and pods say.

    `phases` are what running trial pods say of themselves, by pod uid: `setup`, `agent`, `verifier`.
    """
    by_node = {pod.node_id: pod for pod in pods}
    nodes = [node for workflow in workflows for node in workflow.nodes]
    builds = _builds(nodes)
    users = _users_of_builds(plan)
    building: set[int] = set()
    unbuilt: set[int] = set()
    details: dict[int, str] = {}
    for (index, side), node in builds.items():
        tasks = users.get((index, side), ())
        if node.phase in BROKEN:
            unbuilt.update(tasks)
        elif not node.over:
            building.update(tasks)
            details.update(dict.fromkeys(tasks, _waiting("building its image", node, nodes, by_node)))
    details.update(_trials(nodes, by_node, phases or {}))
    unbuilt.update(node.index for node in nodes if node.index is not None and node.phase == "Omitted")
    return Observed(
        details=details,
        building=frozenset(building),
        unbuilt=frozenset(unbuilt),
        steps=tuple(_steps(nodes, by_node)),
        complete=all(workflow.knows_nodes for workflow in workflows),
    )


def trial_pods(pods: Iterable[Pod]) -> list[Pod]:
    """Running pods of trials: those that can say which phase they are in."""
    return [
        pod for pod in pods if pod.index is not None and pod.attempt is not None and pod.phase == "Running"
    ]


def _builds(nodes: Iterable[Node]) -> dict[tuple[int, str], Node]:
    """The node that stands for each build: the group of its tries, else its only pod."""
    found: dict[tuple[int, str], Node] = {}
    for node in nodes:
        if node.template == names.BUILD and node.index is not None and node.type in _GROUPS:
            key = (node.index, node.inputs.get("side", "agent"))
            if node.type == "Retry" or key not in found:
                found[key] = node
    return found


def _users_of_builds(plan: RunPlan) -> dict[tuple[int, str], list[int]]:
    """Tasks that wait for the build of an image, by the first task and side that use it."""
    first: dict[str, tuple[int, str]] = {}
    users: dict[tuple[int, str], list[int]] = {}
    for task in planned_tasks(plan):
        for side, image in task.images:
            if image.kind == "build":
                place = first.setdefault(image.key, (task.index, side))
                users.setdefault(place, []).append(task.index)
    return users


def _trials(nodes: Iterable[Node], pods: Mapping[str, Pod], phases: Mapping[str, str]) -> dict[int, str]:
    details: dict[int, str] = {}
    for node in nodes:
        if not node.is_pod or node.index is None or node.over:
            continue
        if node.template.partition("-")[0] not in TRIAL_ROLES:
            continue
        pod = pods.get(node.id)
        if pod is not None and pod.uid in phases and pod.phase == "Running":
            details[node.index] = phases[pod.uid]
        elif node.phase == "Running":
            details.setdefault(node.index, "running")
        else:
            details.setdefault(node.index, _pending(node, pod))
    return details


def _pending(node: Node, pod: Pod | None) -> str:
    reason = (pod.waits_for() if pod is not None else "") or node.message
    return f"pending: {reason}" if reason else "pending"


def _waiting(doing: str, group: Node, nodes: Iterable[Node], pods: Mapping[str, Pod]) -> str:
    members = {group.id, *group.children}
    for node in nodes:
        if node.is_pod and node.id in members and not node.over and node.phase != "Running":
            return f"{doing}: {_pending(node, pods.get(node.id))}"
    return doing


def _steps(nodes: Sequence[Node], pods: Mapping[str, Pod]) -> Iterable[Step]:
    retried = {child for node in nodes if node.type == "Retry" for child in node.children}
    for node in nodes:
        if node.template not in _STEP_TEMPLATES or node.id in retried:
            continue
        name = names.MERGE if node.template == names.MERGE else node.entry
        state = "failed" if node.phase in BROKEN else _STATES.get(node.phase, "pending")
        detail = node.message if state == "failed" else ""
        if state in ("pending", "running"):
            waiting = _waiting("", node, nodes, pods)
            detail = waiting.removeprefix(": ")
        yield Step(name, state, detail)
