"""Which services keep a pod from starting: those that are unhealthy, crash, or failed at their one job.

A pod in which a service is restarted for ever waits for ever: Kubernetes calls that Pending. Used by `starts`
and `causes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from argo_harbor.cluster.pods import Pod
from argo_harbor.model.causes import Cause
from argo_harbor.workflow.names import SERVICE_PREFIX

MOST_RESTARTS = 5
"""A service may fail a few times until what it needs is there; the node waits longer each time, so this many
take some minutes."""
_MESSAGE_CHARS = 400


def failed_service(pod: Pod) -> Cause | None:
    """Why the pod will not start, when that is a service's fault; None for every other pod."""
    for status in _services(pod):
        cause = _failure(status, _container(pod, str(status.get("name"))))
        if cause is not None:
            return cause
    return None


def _failure(status: Mapping[str, Any], container: Mapping[str, Any]) -> Cause | None:
    name = str(status.get("name")).removeprefix(SERVICE_PREFIX)
    ended = _terminated(status.get("state"))
    if container.get("restartPolicy") != "Always":
        if ended is None or ended.get("exitCode") == 0:
            return None
        return _cause(f"service {name} was to do its work and {_said(ended)}", ended)
    last = _terminated(status.get("lastState")) or ended
    restarts = status.get("restartCount") or 0
    if last is None or not isinstance(restarts, int) or restarts < 1 or status.get("started") is True:
        return None
    patience = _patience(container.get("startupProbe"))
    if patience and _seconds(last) >= patience:
        return _cause(f"service {name} did not become healthy within {patience} s", last)
    if restarts >= MOST_RESTARTS:
        return _cause(f"service {name} does not stay up: after {restarts} restarts it {_said(last)}", last)
    return None


def _cause(what: str, ended: Mapping[str, Any]) -> Cause:
    # The node puts the last lines of the log there; they are the task's words.
    lines = " ".join(str(ended.get("message") or "").split())
    shown = "".join(char for char in lines if char.isprintable())[-_MESSAGE_CHARS:]
    return Cause("service_failed", f"{what}; its last words: {shown}" if shown else what)


def _said(ended: Mapping[str, Any]) -> str:
    reason = str(ended.get("reason") or "")
    said = f"ended with exit code {ended.get('exitCode')}"
    return said if reason in ("", "Error", "Completed") else f"{said} ({reason})"


def _services(pod: Pod) -> Iterator[Mapping[str, Any]]:
    statuses = pod.status.get("initContainerStatuses")
    for status in statuses if isinstance(statuses, list) else ():
        if isinstance(status, dict) and str(status.get("name")).startswith(SERVICE_PREFIX):
            yield status


def _terminated(state: object) -> Mapping[str, Any] | None:
    ended = state.get("terminated") if isinstance(state, dict) else None
    return ended if isinstance(ended, dict) else None


def _container(pod: Pod, name: str) -> Mapping[str, Any]:
    spec = pod.data.get("spec")
    listed = spec.get("initContainers") if isinstance(spec, dict) else None
    return next((each for each in listed or () if isinstance(each, dict) and each.get("name") == name), {})


def _patience(probe: object) -> int:
    """Seconds that a container may take until it is healthy; 0 without a probe."""
    known = probe if isinstance(probe, dict) else {}
    period, failures = known.get("periodSeconds"), known.get("failureThreshold")
    # The first look is at once, so that the last of them comes one period earlier.
    return period * (failures - 1) if isinstance(period, int) and isinstance(failures, int) else 0


def _seconds(ended: Mapping[str, Any]) -> float:
    try:
        began = datetime.fromisoformat(str(ended.get("startedAt")))
        return (datetime.fromisoformat(str(ended.get("finishedAt"))) - began).total_seconds()
    except ValueError:
        return 0.0
