"""Secrets of a cluster that a submitter needs or makes: the store's credentials, a run's own variables."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from argo_harbor.cluster.client import Cluster, Json
from argo_harbor.cluster.errors import Forbidden
from argo_harbor.cluster.paths import core
from argo_harbor.cluster.workflows import Workflow
from argo_harbor.store.credentials import ACCESS_KEY, SECRET_KEY, Credentials
from argo_harbor.workflow import names


def store_credentials(cluster: Cluster, secret: str) -> Credentials | None:
    """The store's credentials from its Secret; None where it is not there, not whole or not to be read.

    Raises: ClusterError when the API server cannot be asked.
    """
    try:
        found = cluster.find(core(cluster.namespace, "secrets", secret))
    except Forbidden:
        return None
    data = (found or {}).get("data") or {}
    try:
        access, key = (base64.b64decode(data[name]).decode().strip() for name in (ACCESS_KEY, SECRET_KEY))
    except (KeyError, TypeError, binascii.Error, UnicodeDecodeError):
        return None
    return Credentials(access, key) if access and key else None


def secret_keys(cluster: Cluster, secret: str) -> frozenset[str] | None:
    """Keys of a Secret, without its values; None where there is none. Raises: ClusterError."""
    found = cluster.find(core(cluster.namespace, "secrets", secret))
    return None if found is None else frozenset((found.get("data") or {}).keys())


def write_host_secret(cluster: Cluster, run: str, values: Mapping[str, str]) -> None:
    """Bring the variables of the submitter's shell into the run's own Secret. Raises: ClusterError."""
    body: Json = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": names.host_secret(run),
            "namespace": cluster.namespace,
            "labels": {names.RUN_LABEL: run},
        },
        "type": "Opaque",
        "data": {name: base64.b64encode(value.encode()).decode() for name, value in values.items()},
    }
    cluster.apply(core(cluster.namespace, "secrets", names.host_secret(run)), body)


def own_host_secret(cluster: Cluster, workflow: Workflow) -> None:
    """Let the Secret go away with the workflow. Raises: ClusterError."""
    owner = {
        "apiVersion": names.API_VERSION,
        "kind": "Workflow",
        "name": workflow.name,
        "uid": workflow.uid,
        "controller": False,
        "blockOwnerDeletion": False,
    }
    cluster.merge_patch(
        core(cluster.namespace, "secrets", names.host_secret(workflow.name)),
        {"metadata": {"ownerReferences": [owner]}},
    )


def delete_host_secret(cluster: Cluster, run: str) -> None:
    """Raises: ClusterError."""
    cluster.delete(core(cluster.namespace, "secrets", names.host_secret(run)))
