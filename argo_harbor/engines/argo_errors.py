"""What the API server's refusals mean for whoever runs a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.errors import ClusterError, Forbidden, NotFound, Unreachable
from argo_harbor.errors import PlatformError


@contextmanager
def asking(cluster: Cluster, doing: str) -> Iterator[None]:
    """Turn a ClusterError of the block into a PlatformError; `doing` says what for: `create the run`."""
    try:
        yield
    except ClusterError as error:
        raise explain(error, cluster, doing) from error


def explain(error: ClusterError, cluster: Cluster, doing: str) -> PlatformError:
    """The error for people: `platform_unreachable`, `platform_refused` or `platform_not_configured`."""
    place = f"namespace {cluster.namespace}" + (f", context {cluster.context}" if cluster.context else "")
    message = f"cannot {doing} in {place}: {error.message}"
    if isinstance(error, Unreachable):
        return PlatformError("platform_unreachable", message, "check the cluster and repeat the command")
    if isinstance(error, Forbidden):
        hint = "ask the admin for the right, or name another context or namespace"
        return PlatformError("platform_refused", message, hint)
    if isinstance(error, NotFound):
        hint = "argo-harbor doctor says what the cluster lacks"
        return PlatformError("platform_not_configured", message, hint)
    return PlatformError("platform_refused", message, "argo-harbor doctor checks what the cluster takes")
