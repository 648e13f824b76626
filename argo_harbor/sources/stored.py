"""A taskset that was published to a store: `--taskset NAME#DIGEST`.

The manifest names every member of the suite, so indexes are those of the whole suite; only the selected tasks
need to be in the store.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from argo_harbor.errors import Finding, Refused
from argo_harbor.model.taskset import StoredTaskset, Task, Taskset, TasksetMember, Warned
from argo_harbor.sources.fetch import fetch_task, stored_sizes
from argo_harbor.sources.manifest import BROKEN_HINT, read_manifest
from argo_harbor.sources.member import read_member
from argo_harbor.sources.selection import select_members
from argo_harbor.sources.source import Listing, Selection, program_folder
from argo_harbor.store.base import Store
from argo_harbor.store.parallel import in_order


class StoredSource:
    """`--taskset`. See `TaskSource`."""

    def __init__(self, ref: str, store: Store) -> None:
        self._ref = ref
        self._store = store

    def list(self, tasks: Selection = None) -> Listing:
        manifest = read_manifest(self._ref, self._store)
        chosen, warnings = _choose(manifest, self._store, tasks)
        members = tuple((index, manifest.members[index]) for index in chosen)
        return Listing(manifest.ref, len(manifest.members), members, manifest.origin, warnings)

    def load(self, tasks: Selection = None) -> Taskset:
        return load_stored(self._ref, self._store, tasks=tasks)


def load_stored(ref: str, store: Store, *, tasks: Selection = None) -> Taskset:
    """Read a published taskset, narrowed to `tasks`, into a folder that lives as long as this program.

    `ref` is `name#digest` with 64 hex, or a prefix of at least 12 that only one taskset of that name has.
    Where only some tasks of the suite were published, these are all that there is to take, with a warning.

    Raises:
        UsageError: `unknown_flag_value` for a ref that names nothing or too much; selection as in `select`.
        Refused: `source_unreadable` for selected tasks that are not in the store, else for
            every archive among them that is not what its digest says.
        PlatformError: `plan_unreadable` for a manifest that is not what its digest says.
    """
    manifest = read_manifest(ref, store)
    chosen, warnings = _choose(manifest, store, tasks)
    wanted = [(index, manifest.members[index]) for index in chosen]
    there = stored_sizes((member.digest for _, member in wanted), store)
    missing = [
        Finding("source_unreadable", "is not in the store", _PUBLISH_HINT, task=member.name)
        for _, member in wanted
        if member.digest not in there
    ]
    if missing:
        raise Refused.of(missing)
    folder = program_folder("taskset")
    found: list[Task] = []
    findings: list[Finding] = []
    for loaded in in_order(partial(_load, store=store, folder=folder), wanted, threads=store.parallel):
        if isinstance(loaded, Task):
            found.append(loaded)
        else:
            findings += loaded
    if findings:
        raise Refused.of(findings)
    return Taskset(
        manifest.name,
        manifest.digest,
        tuple(found),
        len(manifest.members),
        warnings,
        members=manifest.members,
        origin=manifest.origin,
    )


_PUBLISH_HINT = "publish it with argo-harbor tasksets create, or leave it out with --tasks"


def _choose(manifest: StoredTaskset, store: Store, tasks: Selection) -> tuple[list[int], tuple[Warned, ...]]:
    """Indexes of the members that `tasks` selects; without a selection, of all that were published."""
    if tasks is not None or manifest.published is None:
        return select_members(manifest.name, manifest.members, tasks), ()
    there = stored_sizes((member.digest for member in manifest.members), store)
    noted = set(manifest.published)
    chosen = [
        index for index, member in enumerate(manifest.members) if index in noted or member.digest in there
    ]
    total = len(manifest.members)
    if len(chosen) == total:
        return chosen, ()
    message = (
        f"{total - len(chosen)} of {total} tasks of {manifest.name} were never published and are left out"
    )
    return chosen, (
        Warned("tasks_not_published", message, hint="publish them with argo-harbor tasksets create"),
    )


def _load(wanted: tuple[int, TasksetMember], *, store: Store, folder: Path) -> Task | tuple[Finding, ...]:
    """A task with its files, or what is wrong with it."""
    index, listed = wanted
    root = folder / f"{index:06}"
    try:
        fetch_task(store, listed.digest, root)
    except Refused as error:
        return tuple(replace(item, task=listed.name) for item in error.items)
    member = read_member(str(root), folder=listed.folder, prefix=f"{listed.folder}/", unpacked=True)
    if member.findings:
        return tuple(member.findings)
    if member.name != listed.name:
        message = f"the archive is that of the task {member.name!r}"
        return (Finding("source_unreadable", message, BROKEN_HINT, task=listed.name),)
    return replace(member.as_task(index), folder=listed.folder)
