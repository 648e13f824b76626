"""Compares the objects with a cluster and brings them there, by server-side apply: as often as one likes."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.errors import ClusterError, Forbidden, NotFound, Unreachable
from argo_harbor.errors import Finding, PlatformError
from argo_harbor.install.manifests import MANAGED_LABEL, MANAGER, Object, path_of

type What = Literal["create", "update", "unchanged"]

HIDDEN = "(hidden)"
CHANGED = "(hidden, changed)"

_SERVERS = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
"""Metadata that the API server fills in."""


class Change(NamedTuple):
    """One object before and after. Values of Secrets are in neither."""

    kind: str
    name: str
    what: What
    before: Object | None
    after: Object


def own_namespace(cluster: Cluster, namespace: str) -> bool:
    """Whether the namespace is ours to make and to remove: absent, or made by an earlier install.

    Raises PlatformError.
    """
    try:
        found = cluster.find(path_of({"kind": "Namespace", "metadata": {"name": namespace}}))
    except ClusterError as error:
        raise PlatformError.of([refusal("Namespace", namespace, error)], what="object") from error
    return found is None or (found["metadata"].get("labels") or {}).get(MANAGED_LABEL) == MANAGER


def apply(
    cluster: Cluster,
    objects: Iterable[Object],
    *,
    dry_run: bool,
    progress: Callable[[Change], None] = lambda change: None,
) -> list[Change]:
    """Apply every object, or have the API server say what that would do.

    One object that is refused does not hold up the others, so that all refusals are seen at once. A dry run
    into a namespace that does not exist yet compares nothing on the server: there is nothing there.

    Raises PlatformError: `cluster_refused` with every object that was refused, `platform_unreachable`.
    """
    changes: list[Change] = []
    findings: list[Finding] = []
    fresh = False
    for item in objects:
        kind, name = item["kind"], item["metadata"]["name"]
        try:
            before = None if fresh else cluster.find(path_of(item))
            if dry_run and before is None and kind == "Namespace":
                fresh = True
            if fresh:
                after = item
            elif kind == "Namespace" and before is not None and _labelled(before, item):
                # Who manages only the namespace's inside may not write it, and then need not.
                after = before
            else:
                after = cluster.apply(path_of(item), item, dry_run=dry_run)
        except Unreachable as error:
            raise PlatformError.of([refusal(kind, name, error)], what="object") from error
        except ClusterError as error:
            findings.append(refusal(kind, name, error))
            continue
        change = _change(kind, name, before, after)
        changes.append(change)
        progress(change)
    if findings:
        raise PlatformError.of(findings, what="object")
    return changes


def unified(change: Change) -> str:
    """A change as a unified diff of YAML; empty where nothing changes."""

    def lines(item: Object | None) -> list[str]:
        return [] if item is None else _readable(item).splitlines(keepends=True)

    label = f"{change.kind}/{change.name}"
    return "".join(
        difflib.unified_diff(
            lines(change.before), lines(change.after), f"{label} (cluster)", f"{label} (install)"
        )
    )


def refusal(kind: str, name: str, error: ClusterError) -> Finding:
    """What an API server said about one object, and what to do about it."""
    code = "platform_unreachable" if isinstance(error, Unreachable) else "cluster_refused"
    hint = ""
    if "being terminated" in error.message:
        hint = "the namespace is just being deleted: try again when it is gone"
    elif isinstance(error, Forbidden):
        hint = "this takes the rights of an admin of the cluster or the namespace"
    elif isinstance(error, NotFound):
        hint = "the namespace is missing"
    return Finding(code, error.message, hint, file=f"{kind}/{name}")


def _readable(item: Object) -> str:
    """YAML with files inside as blocks, so that a diff shows the lines that changed.

    Not by the emitter of what is applied: what a cluster answers may hold any value.
    """
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = "|" if "\n" in value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    return yaml.dump(item, Dumper=Dumper, sort_keys=True, allow_unicode=True)


def _change(kind: str, name: str, before: Object | None, after: Object) -> Change:
    old = None if before is None else _plain(before)
    new = _plain(after)
    what: What = "create" if old is None else "unchanged" if old == new else "update"
    if kind == "Secret":
        new = _masked(new, old)
        old = None if old is None else _masked(old, None)
    return Change(kind, name, what, old, new)


def _labelled(found: Object, wanted: Object) -> bool:
    labels: dict[str, str] = found["metadata"].get("labels") or {}
    asked: dict[str, str] = wanted["metadata"]["labels"]
    return asked.items() <= labels.items()


def _plain(item: Object) -> Object:
    metadata = {key: value for key, value in item["metadata"].items() if key not in _SERVERS}
    return {**{key: value for key, value in item.items() if key != "status"}, "metadata": metadata}


def _masked(item: Object, other: Object | None) -> Object:
    data: dict[str, Any] = item.get("data") or {}
    known: dict[str, Any] = (other or {}).get("data") or {}
    masked = {
        key: HIDDEN if other is None or known.get(key) == value else CHANGED for key, value in data.items()
    }
    return {**item, "data": masked} if masked else item
