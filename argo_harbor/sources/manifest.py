"""The manifests of published tasksets: written last by a publish, and never believed without their digest."""

from __future__ import annotations

import re
from itertools import pairwise

from pydantic import ValidationError

from argo_harbor.errors import PlatformError, UsageError
from argo_harbor.model.taskset import StoredTaskset, Taskset
from argo_harbor.sources.directory import taskset_digest
from argo_harbor.store import layout
from argo_harbor.store.base import Entry, KeyNotFound, Store

SHORTEST_DIGEST = 12
_REF = re.compile(rf"(?!\.{{1,2}}#)([a-z0-9.-]+)#([0-9a-f]{{{SHORTEST_DIGEST},64}})")
_CREATE = "argo-harbor tasksets create"
BROKEN_HINT = f"{_CREATE} from the same source writes it anew; if that is gone, remove the object"


def publish_manifest(taskset: Taskset, store: Store) -> bool:
    """Write the taskset's manifest. False when it was there; what is new about where it came from and which
    of its tasks were published is added then.

    A manifest that is there but broken is replaced. Of two who publish other tasks of one suite at once, the
    tasks of one may not be noted; they are in the store all the same, where readers look as well.
    """
    key = layout.taskset(taskset.name, taskset.digest)
    try:
        there = check_manifest(key, store.get(key))
    except KeyNotFound:
        there = None
    published: tuple[int, ...] | None = tuple(task.index for task in taskset.tasks)
    if len(taskset.tasks) == len(taskset.members):
        published = None
    elif there is not None and published is not None:
        published = there.published and tuple(sorted({*there.published, *published}))
    origin = taskset.origin
    if there is not None and there.source:
        origin = there.origin
    manifest = StoredTaskset(
        name=taskset.name,
        digest=taskset.digest,
        # The same tasks may lie in folders of other names elsewhere.
        members=there.members if there is not None else taskset.members,
        published=published,
        source=origin.pinned if origin else "",
        dataset=origin.label if origin else "",
    )
    if manifest != there:
        store.put(key, manifest.canonical())
    return there is None


def read_manifest(ref: str, store: Store) -> StoredTaskset:
    """The manifest of a published taskset, checked against its digest. Raises as `find_manifest`."""
    return find_manifest(ref, store)[1]


def find_manifest(ref: str, store: Store) -> tuple[Entry, StoredTaskset]:
    """The manifest that `ref` names, and its entry in the store.

    `ref` is `name#digest` with 64 hex, or a prefix of at least 12 that only one taskset of that name has.

    Raises:
        UsageError: `unknown_flag_value` for a ref that names nothing or too much.
        PlatformError: `plan_unreadable` for a manifest that is not what its digest says, `store_unreadable`.
    """
    parsed = _REF.fullmatch(ref)
    if parsed is None:
        raise UsageError(
            "unknown_flag_value",
            f"{ref!r} is no taskset",
            f"write NAME#DIGEST with at least {SHORTEST_DIGEST} characters of the digest",
        )
    name, digest = parsed.groups()
    wanted = layout.taskset(name, digest).removesuffix(".json")
    found = [entry for entry in store.list(layout.tasksets(name)) if entry.key.startswith(wanted)]
    if len(found) != 1:
        what = "no taskset" if not found else f"{len(found)} tasksets"
        hint = f"{_CREATE} publishes one" if not found else "write more of the digest"
        raise UsageError("unknown_flag_value", f"{what} {ref} in {store.name}", hint)
    (entry,) = found
    manifest = check_manifest(entry.key, store.get(entry.key))
    if manifest is None:
        message = f"{entry.key} in {store.name} is not what its digest says"
        raise PlatformError("plan_unreadable", message, BROKEN_HINT)
    return entry, manifest


def check_manifest(key: str, data: bytes) -> StoredTaskset | None:
    """The manifest that `data` is, if it is the one that belongs under `key`.

    The digest of a taskset says nothing about the order of its members, which gives them their indexes, so
    the order is held against the names.
    """
    try:
        manifest = StoredTaskset.from_json(data)
    except ValidationError:
        return None
    names = [member.name.encode(errors="surrogatepass") for member in manifest.members]
    right = (
        key == layout.taskset(manifest.name, manifest.digest)
        and manifest.digest == taskset_digest(manifest.members)
        and all(name < following for name, following in pairwise(names))
        and _are_indexes(manifest.published, len(names))
    )
    return manifest if right else None


def _are_indexes(chosen: tuple[int, ...] | None, total: int) -> bool:
    if chosen is None:
        return True
    ascending = all(index < following for index, following in pairwise(chosen))
    return bool(chosen) and ascending and chosen[0] >= 0 and chosen[-1] < total
