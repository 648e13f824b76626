"""Which images the pods of a run did not get, by the pods themselves and by what the nodes reported.

A pod that was ended by its deadline no longer says what it waited for; the events of its node do, for about
an hour.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.paths import core
from argo_harbor.cluster.pods import Pod, PullError
from argo_harbor.model.causes import Cause
from argo_harbor.registry.reference import parse_image

_FAILED = re.compile(r'Failed to pull image "(?P<image>[^"]+)": (?P<message>.*)', re.DOTALL)
_MESSAGE_CHARS = 500


def reported_pulls(cluster: Cluster) -> dict[str, PullError]:
    """The last failed pull of each pod that the namespace's events tell of, by the pod's name.

    Raises: ClusterError.
    """
    found: dict[str, PullError] = {}
    for event in cluster.list(
        core(cluster.namespace, "events"), fields="reason=Failed,involvedObject.kind=Pod"
    ):
        said = _FAILED.match(str(event.get("message") or ""))
        pod = event.get("involvedObject")
        if said and isinstance(pod, Mapping):
            error = PullError(said["image"], "ErrImagePull", said["message"][:_MESSAGE_CHARS])
            found[str(pod.get("name", ""))] = error
    return found


def pull_of(pod: Pod, reported: Mapping[str, PullError]) -> PullError | None:
    """What that pod could not pull; None for one that got all its images, or has not tried yet."""
    own = pod.pull_errors()
    # The node's report holds the registry's answer, a pod that backs off often only that it does.
    return (reported.get(pod.name) or own[0]) if own else None


def cause_of(error: PullError, secrets: Iterable[str]) -> Cause:
    """The pull error as why an attempt never started. `secrets` are the pull Secrets that the pod had."""
    said = f"{error.reason}: {error.message}"
    if not error.unauthorized:
        return Cause("image_pull_failed", f"the node did not get {error.image}: {said}")
    try:
        registry = parse_image(error.image).registry
    except ValueError:
        registry = "its registry"
    named = ", ".join(secrets)
    login = (
        f"with the login of Secret {named}" if named else "without a login ([secrets] image_pull is empty)"
    )
    return Cause("registry_unauthorized", f"{registry} refuses a pull of {error.image} {login}: {said}")
