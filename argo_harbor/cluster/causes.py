"""Why attempts of a run left no record, as its Workflow, its pods and the nodes' events tell it.

The merge asks, in its pod and on a user's machine. What the store has on an attempt counts more than what
stands here: Argo's phases say how pods ended, not what the agent did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.errors import Forbidden
from argo_harbor.cluster.nodes import BROKEN, Node
from argo_harbor.cluster.pods import Pod, PullError, list_pods
from argo_harbor.cluster.pulls import cause_of, pull_of, reported_pulls
from argo_harbor.cluster.services import failed_service
from argo_harbor.cluster.starts import verdict_on
from argo_harbor.cluster.workflows import Workflow, find_workflow, list_parts
from argo_harbor.model.causes import Cause, Causes, EndedBy
from argo_harbor.model.plan import PlanHead
from argo_harbor.model.states import RunPhase
from argo_harbor.workflow import names

UNKNOWN = Causes(
    others=Cause(
        "not_started", "no try of it has started; its workflow is gone, so that the reason is unknown"
    )
)
_COLLISION = Cause(
    "node_collision_possible",
    "no try of it has started and the workflow has no step for it: Argo may have given two steps one id",
)
_NEEDED_BY_ALL = {
    names.NETWORK_BASE: "the run's network could not be fenced",
    names.NETWORK_INTERNET: "the run's network could not be fenced",
    names.NETWORK_BUILD: "the run's network could not be fenced",
    names.GATE: "the canary stopped the run",
    names.SHARD: "a part of the run was not run to its end",
}
"""Templates without whose success others do not start, and what it means when they fail."""
_STOPPED = frozenset({75, 137, 143})
"""How containers end that were told to."""


def read_causes(cluster: Cluster, run: str, head: PlanHead) -> Causes:
    """What the cluster knows of a run, whether or not it has ended; `UNKNOWN` when its Workflow is gone.

    Raises: ClusterError.
    """
    workflow = find_workflow(cluster, run)
    if workflow is None:
        return UNKNOWN
    workflows = [workflow, *list_parts(cluster, workflow)]
    try:
        pods, reported = list_pods(cluster, run), reported_pulls(cluster)
    except Forbidden:
        # Whoever may read workflows only still learns what those know.
        pods, reported = [], {}
    return judge(workflows, pods, reported, head, now=datetime.now(UTC))


def judge(
    workflows: Sequence[Workflow],
    pods: Sequence[Pod],
    reported: Mapping[str, PullError],
    head: PlanHead,
    *,
    now: datetime,
) -> Causes:
    """Pure. `workflows` are the run's own and then its parts, `reported` the failed pulls by pod."""
    run = workflows[0]
    end = _time(run.finished) or now
    created = _time(run.created)
    cut = ended_by(run, end)
    nodes = tuple(node for workflow in workflows for node in workflow.nodes)
    pulls = {pod.node_id: error for pod in pods if (error := pull_of(pod, reported))}
    pulls |= dict(_pulls_of_gone(nodes, reported, {pod.node_id for pod in pods}))
    because = {
        identity: cause_of(error, head.platform.secrets.image_pull) for identity, error in pulls.items()
    }
    because |= {pod.node_id: cause for pod in pods if (cause := verdict_on(pod) or _broken(pod))}
    return Causes(
        ended_by=cut,
        attempts=dict(_of_attempts(nodes, because, cut)),
        tasks=dict(_of_tasks(workflows, nodes, because, head, cut=cut)),
        others=_of_others(workflows, nodes),
        seconds=(end - created).total_seconds() if created else 0.0,
    )


def _broken(pod: Pod) -> Cause | None:
    """Why a pod failed before it started, where a service that runs only once did."""
    return failed_service(pod) if pod.phase == "Failed" else None


def ended_by(run: Workflow, end: datetime) -> EndedBy | None:
    """Whether somebody ended the run before `end`, or its deadline did. Pure."""
    if run.shutdown:
        return RunPhase.CANCELLED
    started = _time(str((run.data.get("status") or {}).get("startedAt") or ""))
    seconds = (run.data.get("spec") or {}).get("activeDeadlineSeconds")
    spent = started is not None and isinstance(seconds, int) and (end - started).total_seconds() >= seconds
    return RunPhase.EXPIRED if spent else None


def _pulls_of_gone(
    nodes: Iterable[Node], reported: Mapping[str, PullError], there: set[str]
) -> Iterator[tuple[str, PullError]]:
    """Failed pulls of pods that nobody can ask any more, by node: a pod's name ends like its node's id."""
    by_suffix = {name.rpartition("-")[2]: error for name, error in reported.items()}
    for node in nodes:
        error = by_suffix.get(node.id.rpartition("-")[2])
        if error and node.is_pod and node.phase in BROKEN and node.id not in there:
            yield node.id, error


def _of_attempts(
    nodes: Iterable[Node], because: Mapping[str, Cause], cut: EndedBy | None
) -> Iterator[tuple[tuple[int, int], Cause]]:
    """Of each attempt the last pod that did not end well."""
    trials = (
        node for node in nodes if node.is_pod and node.index is not None and not names.is_build(node.template)
    )
    for node in sorted(trials, key=lambda node: (node.started, node.name)):
        attempt = node.inputs.get("attempt", "0")
        if node.index is None or not attempt.isdecimal():
            continue
        if node.id in because:
            yield (node.index, int(attempt)), because[node.id]
        elif node.phase in BROKEN and not (cut and _told_to_end(node)):
            yield (node.index, int(attempt)), Cause("not_started", f"its pod ended early: {_ending(node)}")
        elif node.phase == "Succeeded":
            yield (
                (node.index, int(attempt)),
                Cause("not_started", "its pod ended and left nothing in the store"),
            )
        elif not node.over and not cut:
            waits = node.message or "it has not ended yet"
            yield (
                (node.index, int(attempt)),
                Cause("not_started", f"its pod is {node.phase.lower()}: {waits}"),
            )


def _of_tasks(
    workflows: Iterable[Workflow],
    nodes: tuple[Node, ...],
    because: Mapping[str, Cause],
    head: PlanHead,
    *,
    cut: EndedBy | None,
) -> Iterator[tuple[int, Cause]]:
    """Of tasks whose steps were left out, most often because an image that they wait for was not built."""
    indexes = {entry.dag_name: entry.index for entry in head.running}
    chunks = _chunks(workflows)
    by_child = {
        child: because.get(node.id) or Cause("image_build_failed", f"{node.entry}: {_ending(node)}")
        for node in nodes
        if names.is_build(node.template) and node.phase in BROKEN and not (cut and _told_to_end(node))
        for child in node.children
    }
    for node in nodes:
        said = f"its step was left out: {node.message or 'what it waits for failed'}"
        # A run that was cut leaves steps out as well, and then that is told of the run.
        cause = by_child.get(node.id) or (None if cut else Cause("not_started", said))
        if node.phase == "Omitted" and cause is not None:
            for entry in chunks.get(node.entry, (node.entry,)):
                if entry in indexes:
                    yield indexes[entry], cause


def _chunks(workflows: Iterable[Workflow]) -> dict[str, tuple[str, ...]]:
    """The entries of each chunk that the run's graph is cut into."""
    return {
        template["name"]: tuple(str(task.get("name", "")) for task in template["dag"].get("tasks") or ())
        for workflow in workflows
        for template in workflow.templates
        if str(template.get("name", "")).startswith(names.CHUNK_PREFIX)
        and isinstance(template.get("dag"), dict)
    }


def _of_others(workflows: Sequence[Workflow], nodes: Iterable[Node]) -> Cause | None:
    """Of attempts without a step of their own."""
    if not all(workflow.knows_nodes for workflow in workflows):
        return Cause(
            "not_started",
            "no try of it has started; Argo keeps the run's steps where only its server sees them",
        )
    for node in nodes:
        if node.phase in BROKEN and (what := _NEEDED_BY_ALL.get(node.template)):
            return Cause("not_started", f"{what}: {_ending(node)}")
    whole = workflows[0].name
    done = any(node.name == whole and node.over for node in nodes)
    return _COLLISION if done else None


def _told_to_end(node: Node) -> bool:
    """Whether it looks like the end of the run itself: that is told of the run, not of each attempt."""
    return "shutdown" in node.message or "strategy" in node.message or node.exit_code in _STOPPED


def _ending(node: Node) -> str:
    said = node.message or node.phase.lower()
    return said if node.exit_code is None or "exit code" in said else f"{said} (exit code {node.exit_code})"


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
