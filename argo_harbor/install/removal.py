"""Takes away what `install` brought, by its label, and nothing else.

The namespace goes only when an install made it and nothing of anybody else is left in it: deleting a
namespace deletes all that is in it, results of running workflows included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from argo_harbor.cluster import paths
from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.errors import ClusterError
from argo_harbor.errors import PlatformError
from argo_harbor.install.changes import own_namespace, refusal
from argo_harbor.install.manifests import KINDS, MANAGED_LABEL, MANAGER, NAMESPACE, path

_SELECTOR = f"{MANAGED_LABEL}={MANAGER}"
# Kubernetes and OpenShift put these into every namespace.
_GIVEN = {
    ("configmaps", "kube-root-ca.crt"),
    ("configmaps", "openshift-service-ca.crt"),
    ("serviceaccounts", "default"),
}
_SHOWN = 5


class Installed(NamedTuple):
    """One object that an install made."""

    kind: str
    name: str
    path: str


class Removal(NamedTuple):
    """What removing an install takes away."""

    objects: tuple[Installed, ...]
    """In the order of deleting."""
    namespace: bool
    """Whether the namespace goes too."""
    kept_because: str
    """Why the namespace stays; empty where it goes, or is not there."""


def plan_removal(cluster: Cluster, namespace: str) -> Removal:
    """Look what is there. Raises PlatformError."""
    try:
        found = [
            item for kind in reversed(KINDS.values()) for item in _installed(cluster, kind.name, namespace)
        ]
        if cluster.find(path(NAMESPACE, "", namespace)) is None:
            return Removal((), namespace=False, kept_because="")
        if not own_namespace(cluster, namespace):
            return Removal(tuple(found), namespace=False, kept_because="it was there before the installation")
        foreign = sorted(_foreign(cluster, namespace))
    except ClusterError as error:
        raise PlatformError.of([refusal(NAMESPACE.name, namespace, error)], what="object") from error
    if foreign:
        rest = f" and {len(foreign) - _SHOWN} more" if len(foreign) > _SHOWN else ""
        reason = f"it holds {', '.join(foreign[:_SHOWN])}{rest}"
        return Removal(tuple(found), namespace=False, kept_because=reason)
    return Removal(tuple(found), namespace=True, kept_because="")


def remove(cluster: Cluster, namespace: str, removal: Removal) -> None:
    """Delete what was planned; what is gone already is no error. Raises PlatformError."""
    try:
        for item in removal.objects:
            cluster.delete(item.path)
        if removal.namespace:
            cluster.delete(path(NAMESPACE, "", namespace))
    except ClusterError as error:
        raise PlatformError.of([refusal(NAMESPACE.name, namespace, error)], what="object") from error


def _installed(cluster: Cluster, kind: str, namespace: str) -> Iterator[Installed]:
    if kind == NAMESPACE.name:
        return
    for item in cluster.list(path(KINDS[kind], namespace), labels=_SELECTOR):
        name = item["metadata"]["name"]
        yield Installed(kind, name, path(KINDS[kind], namespace, name))


def _foreign(cluster: Cluster, namespace: str) -> Iterator[str]:
    """Everything in the namespace that no install made, as `plural/name`, a few of each kind."""
    for group, plural in _listable(cluster):
        where = paths.core(namespace, plural) if group == "v1" else paths.grouped(group, namespace, plural)
        page = cluster.get(where, {"labelSelector": f"{MANAGED_LABEL}!={MANAGER}", "limit": "10"})
        for item in page.get("items") or ():
            metadata = item.get("metadata") or {}
            if (plural, metadata.get("name")) not in _GIVEN and not _of_default_account(item):
                yield f"{plural}/{metadata.get('name')}"


def _of_default_account(item: dict[str, object]) -> bool:
    """Clusters that make a token Secret for each account made one for the default account too."""
    metadata = item.get("metadata")
    annotations = (metadata.get("annotations") if isinstance(metadata, dict) else None) or {}
    return annotations.get("kubernetes.io/service-account.name") == "default"


def _listable(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Group with version, and plural, of everything that can be in a namespace and stays until deleted."""
    groups = cluster.get("/apis").get("groups") or ()
    versions = ["v1", *(each["preferredVersion"]["groupVersion"] for each in groups)]
    for version in versions:
        resources = cluster.get("/api/v1" if version == "v1" else f"/apis/{version}").get("resources") or ()
        yield from ((version, name) for name in _lasting(resources))


def _lasting(resources: Iterable[dict[str, object]]) -> Iterator[str]:
    for each in resources:
        verbs = each.get("verbs")
        name = str(each.get("name", ""))
        # Events pass by themselves, and an endpoint slice or metric follows from something else.
        derived = name in ("events", "endpoints", "endpointslices")
        if (
            each.get("namespaced")
            and isinstance(verbs, list)
            and {"list", "delete"} <= {*verbs}
            and not derived
        ):
            yield name
