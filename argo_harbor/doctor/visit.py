"""One visit of the doctor: every object that it makes, one look at its pods for all checks, and its end.

Whatever happens, `leave` removes what was made: each object is noted before it is asked for, and carries a
label by which the next visit finds what a killed one left.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from argo_harbor.cluster import paths
from argo_harbor.cluster.client import Cluster, Json
from argo_harbor.cluster.errors import AlreadyExists, ClusterError
from argo_harbor.cluster.pods import Pod
from argo_harbor.workflow import names

LABEL = "argo-harbor/doctor"
"""Id of the visit, on everything that it makes."""
ROLE_LABEL = "argo-harbor/doctor-pod"

_LOOK_SECONDS = 0.5
_STALE_SECONDS = 600
_NETWORKING = "networking.k8s.io/v1"


class Stopped(Exception):
    """The visit is over: no check has anything more to do."""


class Visit:
    """What all checks share. Used by several threads at once."""

    def __init__(self, cluster: Cluster, *, seconds: float) -> None:
        """`seconds` until every check must have come to an end."""
        self.cluster = cluster
        self.id = secrets.token_hex(4)
        self.seconds = seconds
        self.deadline = time.monotonic() + seconds
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._made: list[str] = []
        self._pods: dict[str, Pod] = {}
        self._looked = 0.0

    def path(self, kind: str, name: str = "") -> str:
        """Where the API has pods, networkpolicies or workflows of the namespace."""
        namespace = self.cluster.namespace
        if kind == "workflows":
            return paths.workflows(namespace, name)
        if kind == "networkpolicies":
            return paths.grouped(_NETWORKING, namespace, kind, name)
        return paths.core(namespace, kind, name)

    def labels(self, role: str) -> dict[str, str]:
        return {LABEL: self.id, ROLE_LABEL: role}

    def name(self, role: str) -> str:
        return f"argo-harbor-doctor-{self.id}-{role}"

    def make(self, kind: str, body: Json) -> Json:
        """Create an object, to be removed in the end. Raises: ClusterError, Stopped."""
        path = self.path(kind, body["metadata"]["name"])
        with self._lock:
            if self._over.is_set():
                raise Stopped
            self._made.append(path)
        try:
            return self.cluster.create(self.path(kind), body)
        except AlreadyExists:
            return self.cluster.get(path)

    def pod(self, name: str) -> Pod | None:
        """A pod of the visit as it was at most half a second ago. Raises: ClusterError."""
        return self.pods().get(name)

    def pods(self, *, anew: bool = False) -> Mapping[str, Pod]:
        """All pods of the visit by name, as they were a moment ago, or `anew`. Raises: ClusterError."""
        with self._lock:
            if anew or time.monotonic() - self._looked > _LOOK_SECONDS:
                found = [
                    Pod(item) for item in self.cluster.list(self.path("pods"), labels=f"{LABEL}={self.id}")
                ]
                self._pods = {pod.name: pod for pod in found}
                self._looked = time.monotonic()
            return self._pods

    def wait(self) -> bool:
        """Let some time pass. False when there is no more of it. Raises: Stopped."""
        if self._over.wait(_LOOK_SECONDS):
            raise Stopped
        return time.monotonic() < self.deadline

    def warning_about(self, name: str) -> str:
        """The last warning among the events of an object; empty where none can be read."""
        try:
            events = [
                event
                for event in self.cluster.list(self.path("events"), fields=f"involvedObject.name={name}")
                if event.get("type") == "Warning"
            ]
        except ClusterError:
            return ""
        events.sort(key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
        return str(events[-1].get("message") or "") if events else ""

    def stop(self) -> None:
        """End all checks: each raises Stopped as soon as it waits or makes something."""
        self._over.set()

    def leave(self) -> list[str]:
        """Remove all that was made, after every check has ended. Paths of what could not be removed."""
        made = list(reversed(self._made))
        with ThreadPoolExecutor(8) as threads:
            return [
                path for path, gone in zip(made, threads.map(self._remove, made), strict=True) if not gone
            ]

    def remove_stale(self) -> None:
        """Remove what an earlier visit left when it was killed. Raises: ClusterError."""
        for kind in ("pods", "networkpolicies", "workflows"):
            for item in self.cluster.list(self.path(kind), labels=f"{LABEL},{LABEL}!={self.id}"):
                if _age(item) > _STALE_SECONDS:
                    self._remove(self.path(kind, item["metadata"]["name"]))

    def _remove(self, path: str) -> bool:
        try:
            self.cluster.delete(path)
        except ClusterError:
            return False
        return True


def pod_of(visit: Visit, role: str, containers: list[Json], **spec: Any) -> Json:
    """A pod of the visit: it ends by itself soon, whatever becomes of the doctor, and has no rights."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": visit.name(role),
            "namespace": visit.cluster.namespace,
            "labels": {**visit.labels(role), "sidecar.istio.io/inject": "false"},
        },
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": int(visit.seconds) + 120,
            "terminationGracePeriodSeconds": 1,
            "serviceAccountName": names.TRIAL_ACCOUNT,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "containers": containers,
            **spec,
        },
    }


def _age(item: Json) -> float:
    from datetime import UTC, datetime

    made = str((item.get("metadata") or {}).get("creationTimestamp") or "")
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(made)).total_seconds()
    except ValueError:
        return 0.0
