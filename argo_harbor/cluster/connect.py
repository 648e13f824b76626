"""Opens the connection: from the user's kubeconfig, or with the token that a pod was given."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from argo_harbor.cluster.client import CONNECT_SECONDS, Cluster
from argo_harbor.cluster.errors import ClusterError, Forbidden
from argo_harbor.errors import PlatformError

if TYPE_CHECKING:
    from kubernetes.client import Configuration

ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
DEFAULT_NAMESPACE = "argo-harbor"


def has_kubeconfig() -> bool:
    """Whether this user has any kubeconfig at all: a file that `KUBECONFIG` names, or `~/.kube/config`."""
    named = os.environ.get("KUBECONFIG")
    if named is not None:
        return any(Path(part).expanduser().is_file() for part in named.split(os.pathsep) if part)
    try:
        return (Path.home() / ".kube" / "config").is_file()
    except (RuntimeError, OSError):
        return False


def connect(context: str | None = None, namespace: str | None = None) -> Cluster:
    """The API server of a kube context, asked once whether it answers (within 3 s).

    The namespace is the one given, else the context's own, else `argo-harbor`.

    Raises PlatformError: `platform_not_configured` without a kubeconfig or such a context,
    `platform_unreachable` when nothing answers.
    """
    import yaml
    from kubernetes import client, config

    if not has_kubeconfig():
        raise PlatformError(
            "platform_not_configured",
            "there is no kubeconfig",
            "set KUBECONFIG, or run on this machine with --engine local",
        )
    try:
        # The client looks at the variable once, when it is imported.
        files = os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
        contexts, current = config.list_kube_config_contexts(config_file=files)
        names = {each["name"]: each.get("context") or {} for each in contexts}
        chosen = context or (current or {}).get("name", "")
        if chosen not in names:
            raise PlatformError(
                "platform_not_configured",
                f"the kubeconfig has no context {chosen!r}" if chosen else "no kube context is current",
                f"contexts: {', '.join(sorted(names)) or 'none'}",
            )
        configuration = client.Configuration()
        # Many threads may ask at once, and the client warns of each connection that it does not keep.
        configuration.connection_pool_maxsize = 64
        config.load_kube_config(
            config_file=files, context=chosen, client_configuration=configuration, persist_config=False
        )
    except (config.ConfigException, yaml.YAMLError, OSError, ValueError, TypeError, KeyError) as error:
        raise PlatformError(
            "platform_not_configured",
            f"the kubeconfig cannot be used: {error}",
            "`kubectl config view` shows what is in it",
        ) from error
    found = Cluster(
        client.ApiClient(configuration),
        context=chosen,
        namespace=namespace or names[chosen].get("namespace") or DEFAULT_NAMESPACE,
    )
    _ask(found)
    return found


def connect_in_pod(namespace: str) -> Cluster:
    """The API server that a pod's own account reaches.

    Raises PlatformError: `platform_not_configured` without a mounted token.
    """
    from kubernetes import client, config

    configuration: Configuration = client.Configuration()
    try:
        config.load_incluster_config(client_configuration=configuration)
    except config.ConfigException as error:
        raise PlatformError(
            "platform_not_configured", f"this process has no account of a cluster: {error}"
        ) from error
    return Cluster(client.ApiClient(configuration), context="", namespace=namespace)


def _ask(cluster: Cluster) -> None:
    try:
        cluster.get("/version", tries=1, seconds=CONNECT_SECONDS)
    except Forbidden as error:
        raise PlatformError(
            "platform_unreachable",
            f"{cluster.server} (context {cluster.context}) does not take the credentials: {error.message}",
            "log in again, or name another context with --context",
        ) from error
    except ClusterError as error:
        raise PlatformError(
            "platform_unreachable",
            f"context {cluster.context}: {error.message}",
            "check the cluster, name another with --context, or run here with --engine local",
        ) from error
