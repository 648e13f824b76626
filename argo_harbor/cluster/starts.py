"""Which pods of a run will never start, and why: read off the pods alone, whoever watches them.

The verdict is written on the pod that is ended for it, so that the merge can tell it after the node has
forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from argo_harbor.cluster.client import Cluster, Json
from argo_harbor.cluster.paths import core, workflows
from argo_harbor.cluster.pods import Pod
from argo_harbor.cluster.pulls import cause_of
from argo_harbor.cluster.services import failed_service
from argo_harbor.model.causes import Cause
from argo_harbor.workflow import names

VERDICT_ANNOTATION = "argo-harbor/never-started"
"""JSON of a cause's code and message."""
PATIENCE = 20.0
"""Seconds that a fault must last which no repetition cures: the kubelet has tried again by then."""


class Starts:
    """Remembers since when pods have waited, by the clock of whoever looks."""

    def __init__(self, *, start_seconds: float, logins: Sequence[str]) -> None:
        """`start_seconds` is what a pod may take from its node to its start, pulls included; `logins` are the
        Secrets that pods pull with."""
        self._start_seconds = start_seconds
        self._logins = logins
        self._waiting: dict[str, float] = {}
        self._broken: dict[str, float] = {}

    def hopeless(self, pods: Iterable[Pod], now: float) -> Iterator[tuple[Pod, Cause]]:
        """Those of the pending pods that are to be ended. `now` is in seconds, of any clock that only
        grows."""
        # One that is ended already may take its time to go.
        placed = [pod for pod in pods if pod.node and verdict_on(pod) is None]
        broken = {pod.uid: cause for pod in placed if (cause := self._for_good(pod))}
        self._waiting = {pod.uid: self._waiting.get(pod.uid, now) for pod in placed}
        self._broken = {uid: self._broken.get(uid, now) for uid in broken}
        for pod in placed:
            if pod.uid in broken and now - self._broken[pod.uid] >= PATIENCE:
                yield pod, broken[pod.uid]
            elif now - self._waiting[pod.uid] >= self._start_seconds:
                yield pod, self._too_late(pod)

    def _for_good(self, pod: Pod) -> Cause | None:
        for error in pod.pull_errors():
            if error.lasting:
                return cause_of(error, self._logins)
        said = pod.config_error()
        return Cause("not_started", f"its pod cannot be made: {said}") if said else failed_service(pod)

    def _too_late(self, pod: Pod) -> Cause:
        for error in pod.pull_errors():
            return cause_of(error, self._logins)
        waits = pod.waits_for() or "its node says no more than that it is being started"
        return Cause("not_started", f"its pod did not start within {self._start_seconds:.0f} s: {waits}")


def pending_pods(cluster: Cluster, run: str) -> list[Pod]:
    """Raises: ClusterError."""
    found = cluster.list(
        core(cluster.namespace, "pods"), labels=f"{names.RUN_LABEL}={run}", fields="status.phase=Pending"
    )
    return [Pod(item) for item in found]


def is_over(cluster: Cluster, run: str) -> bool:
    """Whether the run's Workflow has ended, without reading all of it. Raises: ClusterError."""
    found = cluster.list(
        workflows(cluster.namespace), labels=f"{names.COMPLETED_LABEL}=true", fields=f"metadata.name={run}"
    )
    return any(True for _ in found)


def end_pod(cluster: Cluster, pod: Pod, cause: Cause) -> None:
    """Have the node give that pod up, which Argo does not try again. Raises: ClusterError."""
    verdict = json.dumps({"code": cause.code, "message": cause.message})
    patch: Json = {
        # Another pod may have the name by now.
        "metadata": {"uid": pod.uid, "annotations": {VERDICT_ANNOTATION: verdict}},
        "spec": {"activeDeadlineSeconds": 1},
    }
    cluster.merge_patch(core(cluster.namespace, "pods", pod.name), patch)


def verdict_on(pod: Pod) -> Cause | None:
    """Why that pod was ended before it started; None for every other pod."""
    try:
        found = json.loads(pod.annotations.get(VERDICT_ANNOTATION, ""))
    except ValueError:
        return None
    if not isinstance(found, Mapping):
        return None
    return Cause(str(found.get("code", "not_started")), str(found.get("message", "")))
