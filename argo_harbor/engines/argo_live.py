"""A run as the cluster shows it now: its workflows, its pods, and what those say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

from argo_harbor.bundle.observed import NOTHING, Observed
from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.errors import ClusterError
from argo_harbor.cluster.paths import core
from argo_harbor.cluster.pods import MAIN, Pod, follow_log, list_pods, read_log
from argo_harbor.cluster.workflows import Workflow, list_parts
from argo_harbor.engines.argo_errors import asking
from argo_harbor.engines.argo_observe import observe, trial_pods
from argo_harbor.engines.base import LiveLog, LogSource
from argo_harbor.workflow import names

ASKED_PODS = 40
"""Running trials that are asked for their phase at most: each costs a request."""
_AT_ONCE = 8
_TAIL = {"container": MAIN, "tailLines": "50", "limitBytes": "65536"}
_PHASE = re.compile(r"^\s*\d+m [\d.]+s  (sandbox|setup|agent|verifier|collect) begins\s*$", re.MULTILINE)


class LiveRun:
    """One look at a run; ask anew for the next."""

    def __init__(self, cluster: Cluster, workflow: Workflow | None, *, logins: Sequence[str] = ()) -> None:
        """`logins` are the Secrets that its pods pull images with."""
        self._cluster = cluster
        self._logins = logins
        self._workflow = workflow

    def observe(self) -> Observed:
        """Where its tasks are; of a run that is over only how its steps ended. Raises: PlatformError."""
        workflow = self._workflow
        if workflow is None:
            return NOTHING
        if workflow.over:
            return observe([workflow], [])
        with asking(self._cluster, f"look at {workflow.name}"):
            workflows = [workflow, *self._parts]
            pods = self._pods
        return observe(workflows, pods, phases=self._phases(pods), logins=self._logins)

    @cached_property
    def _parts(self) -> list[Workflow]:
        """Raises: ClusterError."""
        workflow = self._workflow
        if workflow is None or not any(node.template == names.SHARD for node in workflow.nodes):
            return []
        return list_parts(self._cluster, workflow)

    @cached_property
    def _pods(self) -> list[Pod]:
        """Raises: ClusterError."""
        return [] if self._workflow is None else list_pods(self._cluster, self._workflow.name)

    def _phases(self, pods: list[Pod]) -> dict[str, str]:
        """Phases by pod uid, as the logs of running trials tell them."""
        asked = trial_pods(pods)[:ASKED_PODS]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = zip(asked, pool.map(self._phase, asked), strict=True)
            return {pod.uid: phase for pod, phase in found if phase}

    def _phase(self, pod: Pod) -> str:
        try:
            text = self._cluster.text(core(self._cluster.namespace, "pods", pod.name, "log"), _TAIL)
        except ClusterError:
            # The container starts or is gone: its node's phase says as much.
            return ""
        said = _PHASE.findall(text)
        return str(said[-1]) if said else ""

    def logs(self, source: LogSource, *, follow: bool) -> Iterator[LiveLog]:
        """Logs of the pods that `source` means, the oldest first. Raises: ClusterError."""
        for pod in sorted(self._pods, key=lambda pod: pod.created):
            if not self._is_meant(pod, source) or pod.phase == "Pending":
                continue
            lines = (
                follow_log(self._cluster, pod.name)
                if follow and pod.phase == "Running"
                else iter(read_log(self._cluster, pod.name).splitlines())
            )
            yield LiveLog(f"pod {pod.name}", lines)

    def _is_meant(self, pod: Pod, source: LogSource) -> bool:
        if source.what == "trial":
            return (
                pod.attempt is not None and pod.index == source.task and source.attempt in (None, pod.attempt)
            )
        node = self._templates.get(pod.node_id, "")
        if source.what == "build":
            return names.is_build(node) and source.task in (None, pod.index)
        return node == names.MERGE

    @cached_property
    def _templates(self) -> dict[str, str]:
        """Template by node id."""
        workflows = [] if self._workflow is None else [self._workflow, *self._parts]
        return {node.id: node.template for workflow in workflows for node in workflow.nodes}
