"""A taskset that was published to a store: `--taskset NAME#DIGEST`.

The manifest names every member of the suite, so indexes are those of the whole suite; only the selected tasks
need to be in the store.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from argo_harbor.errors import Finding, PlatformError, Refused, UsageError
from argo_harbor.model.taskset import Origin, StoredTaskset, Task, Taskset, TasksetMember
from argo_harbor.sources.directory import taskset_digest
from argo_harbor.sources.fetch import fetch_task
from argo_harbor.sources.member import read_member
from argo_harbor.sources.selection import select_members
from argo_harbor.sources.source import Listing, Selection, program_folder
from argo_harbor.store import layout
from argo_harbor.store.base import KeyNotFound, Store

SHORTEST_DIGEST = 12
_REF = re.compile(rf"([a-z0-9.-]+)#([0-9a-f]{{{SHORTEST_DIGEST},64}})")


class StoredSource:
    """`--taskset`. See `TaskSource`."""

    def __init__(self, ref: str, store: Store) -> None:
        self._ref = ref
        self._store = store

    def list(self, tasks: Selection = None) -> Listing:
        manifest = read_manifest(self._ref, self._store)
        chosen = select_members(manifest.name, manifest.members, tasks)
        members = tuple((index, manifest.members[index]) for index in chosen)
        return Listing(_ref(manifest), len(manifest.members), members, _origin(manifest))

    def load(self, tasks: Selection = None) -> Taskset:
        return load_stored(self._ref, self._store, tasks=tasks)


def publish_manifest(taskset: Taskset, store: Store) -> bool:
    """Write the taskset's manifest. False when it was there; where it came from is added when that was open.

    Its members are what its digest says, so a manifest of the same name and digest can only be broken or the
    same.
    """
    key = layout.taskset(taskset.name, taskset.digest)
    manifest = StoredTaskset(
        name=taskset.name,
        digest=taskset.digest,
        members=taskset.members,
        source=taskset.origin.pinned if taskset.origin else "",
        dataset=taskset.origin.label if taskset.origin else "",
    )
    try:
        there = StoredTaskset.from_json(store.get(key))
    except (KeyNotFound, ValidationError):
        store.put(key, manifest.canonical())
        return True
    if there.members != manifest.members or (manifest.source and not there.source):
        store.put(key, manifest.canonical())
    return False


def load_stored(ref: str, store: Store, *, tasks: Selection = None) -> Taskset:
    """Read a published taskset, narrowed to `tasks`, into a folder that lives as long as this program.

    `ref` is `name#digest` with 64 hex, or a prefix of at least 12 that only one taskset of that name has.

    Raises:
        UsageError: `unknown_flag_value` for a ref that names nothing or too much; selection as in `select`.
        Refused: `source_unreadable` for selected tasks that were never published.
        PlatformError: `plan_unreadable` for a manifest or archive that is not what its digest says.
    """
    manifest = read_manifest(ref, store)
    chosen = select_members(manifest.name, manifest.members, tasks)
    missing = [
        Finding("source_unreadable", "is not in the store", _PUBLISH_HINT, task=manifest.members[index].name)
        for index in chosen
        if not store.exists(layout.task_archive(manifest.members[index].digest))
    ]
    if missing:
        raise Refused.of(missing)
    folder = program_folder("taskset")
    found = tuple(_load(index, manifest.members[index], store, folder) for index in chosen)
    return Taskset(
        manifest.name,
        manifest.digest,
        found,
        len(manifest.members),
        members=manifest.members,
        origin=_origin(manifest),
    )


_PUBLISH_HINT = "submit it once from its folder with --harbor-dir, or leave it out with --tasks"


def read_manifest(ref: str, store: Store) -> StoredTaskset:
    """The manifest of a published taskset, checked against its digest. Raises as `load_stored`."""
    parsed = _REF.fullmatch(ref)
    if parsed is None:
        raise UsageError(
            "unknown_flag_value",
            f"{ref!r} is no taskset",
            f"write NAME#DIGEST with at least {SHORTEST_DIGEST} characters of the digest",
        )
    name, digest = parsed.groups()
    keys = [
        entry.key for entry in store.list(layout.tasksets(name)) if Path(entry.key).stem.startswith(digest)
    ]
    if len(keys) != 1:
        what = "no taskset" if not keys else f"{len(keys)} tasksets"
        hint = "submit the suite once with --harbor-dir" if not keys else "write more of the digest"
        raise UsageError("unknown_flag_value", f"{what} {ref} in {store.name}", hint)
    try:
        manifest = StoredTaskset.from_json(store.get(keys[0]))
    except ValidationError as error:
        raise _broken(keys[0], store) from error
    if keys[0] != layout.taskset(manifest.name, taskset_digest(manifest.members)):
        raise _broken(keys[0], store)
    return manifest


def _ref(manifest: StoredTaskset) -> str:
    return f"{manifest.name}#{manifest.digest}"


def _origin(manifest: StoredTaskset) -> Origin | None:
    if not manifest.source:
        return None
    name, _, version = manifest.dataset.rpartition("@")
    return Origin(pinned=manifest.source, name=name, version=version)


def _broken(key: str, store: Store) -> PlatformError:
    return PlatformError(
        "plan_unreadable",
        f"{key} in {store.name} is not what its digest says",
        "remove it and submit the suite again with --harbor-dir",
    )


def _load(index: int, wanted: TasksetMember, store: Store, folder: Path) -> Task:
    root = folder / f"{index:06}"
    fetch_task(store, wanted.digest, root)
    member = read_member(str(root), folder=wanted.folder, prefix=f"{wanted.folder}/", unpacked=True)
    if member.findings:
        raise Refused.of(member.findings)
    return replace(member.as_task(index), folder=wanted.folder)
