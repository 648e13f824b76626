"""The pods of a run: why they wait, which image could not be pulled, and what they log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.objects import ApiObject
from argo_harbor.cluster.paths import core
from argo_harbor.workflow import names

NODE_ID_ANNOTATION = "workflows.argoproj.io/node-id"
MAIN = "main"

PULL_REASONS = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "RegistryUnavailable", "ErrImageNeverPull"}
)
STARTING = frozenset({"PodInitializing", "ContainerCreating"})
"""What every container says while nothing is wrong with it."""
_MESSAGE_CHARS = 500
# Digits alone could be a part of a digest or a port.
_UNAUTHORIZED = re.compile(
    r"unauthorized|authentication required|authorization failed|no basic auth|forbidden|access denied|"
    r"status:? (?:code )?40[13]\b",
    re.IGNORECASE,
)
_NOT_FOUND = re.compile(r"\bnot found\b|manifest unknown|name unknown|no match for platform", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PullError:
    """An image that the node did not get."""

    image: str
    reason: str
    message: str

    @property
    def unauthorized(self) -> bool:
        """Whether the registry wants credentials that the pod did not show."""
        return _UNAUTHORIZED.search(self.message) is not None

    @property
    def lasting(self) -> bool:
        """Whether the next pull will meet the same: a refused login, no such image, a name that is none."""
        unnamed = self.reason in ("InvalidImageName", "ErrImageNeverPull")
        return unnamed or self.unauthorized or _NOT_FOUND.search(self.message) is not None


class Pod(ApiObject):
    """One pod of a run. Its phase is Kubernetes' word: Pending, Running, Succeeded, Failed, Unknown."""

    @property
    def node_id(self) -> str:
        """Id of its node in the workflow's status."""
        return str(self.annotations.get(NODE_ID_ANNOTATION, ""))

    @property
    def node(self) -> str:
        """Name of the machine that it was given to; empty while it waits for one."""
        spec = self.data.get("spec")
        return str(spec.get("nodeName") or "") if isinstance(spec, dict) else ""

    @property
    def workflow(self) -> str:
        return self.labels.get(names.WORKFLOW_LABEL, "")

    @property
    def index(self) -> int | None:
        """Index of the task that it works for; None for steps of the whole run."""
        return _number(self.labels.get(names.TASK_LABEL, ""))

    @property
    def attempt(self) -> int | None:
        return _number(self.labels.get(names.ATTEMPT_LABEL, ""))

    def pull_errors(self) -> list[PullError]:
        """Images that could not be pulled, as far as the node has said so."""
        found = []
        for status, waiting in self._waiting():
            if waiting.get("reason") in PULL_REASONS:
                message = str(waiting.get("message") or "")[:_MESSAGE_CHARS]
                found.append(PullError(str(status.get("image") or ""), str(waiting["reason"]), message))
        return found

    def config_error(self) -> str:
        """What a container lacks that cannot be made: a Secret, a key of one; empty where nothing does."""
        for status, waiting in self._waiting():
            if waiting.get("reason") == "CreateContainerConfigError":
                message = str(waiting.get("message") or "")[:_MESSAGE_CHARS]
                return ": ".join(filter(None, (str(status.get("name") or ""), message)))
        return ""

    def waits_for(self) -> str:
        """Why a pending pod does not run yet, in words of scheduler or node; empty when it just starts."""
        for condition in _dicts(self.status.get("conditions")):
            if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
                return str(condition.get("message") or condition.get("reason") or "")[:_MESSAGE_CHARS]
        for status, waiting in self._waiting():
            reason = str(waiting.get("reason") or "")
            if reason and reason not in STARTING:
                what = str(status.get("image") if reason in PULL_REASONS else status.get("name") or "")
                message = str(waiting.get("message") or "")[:_MESSAGE_CHARS]
                return ": ".join(filter(None, (reason, what, message)))
        return ""

    def _waiting(self) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        for kind in ("initContainerStatuses", "containerStatuses"):
            for status in _dicts(self.status.get(kind)):
                state = status.get("state")
                waiting = state.get("waiting") if isinstance(state, dict) else None
                if isinstance(waiting, dict):
                    yield status, waiting


def list_pods(cluster: Cluster, run: str) -> list[Pod]:
    """The pods of a run and of its parts, as long as they are kept. Raises: ClusterError."""
    return [
        Pod(item) for item in cluster.list(core(cluster.namespace, "pods"), labels=f"{names.RUN_LABEL}={run}")
    ]


def read_log(cluster: Cluster, pod: str, container: str = MAIN) -> str:
    """What a container has written so far. Raises: ClusterError, also while it has not started."""
    return cluster.text(core(cluster.namespace, "pods", pod, "log"), {"container": container})


def follow_log(cluster: Cluster, pod: str, container: str = MAIN) -> Iterator[str]:
    """Its lines as they come, from the first; ends with the container. Raises: ClusterError."""
    path = core(cluster.namespace, "pods", pod, "log")
    for line in cluster.lines(path, {"container": container, "follow": "true"}):
        yield line.decode(errors="replace")


def _dicts(values: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(values, list):
        yield from (value for value in values if isinstance(value, dict))


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() else None
