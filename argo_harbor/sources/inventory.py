"""What tasksets a store holds, and what of each: for `tasksets list` and `tasksets show`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from argo_harbor.model.taskset import StoredTaskset
from argo_harbor.sources.fetch import stored_sizes
from argo_harbor.sources.manifest import check_manifest, find_manifest
from argo_harbor.store import layout
from argo_harbor.store.base import Entry, KeyNotFound, Store
from argo_harbor.store.parallel import in_order

_KEY = re.compile(rf"{layout.tasksets()}(?P<name>[^/]+)/(?P<digest>[^/]+)\.json")


@dataclass(frozen=True, slots=True)
class Inventory:
    """One taskset of a store."""

    name: str
    digest: str
    """As its key says, which of a broken one is all that is known."""
    published: float
    """Store's time of the manifest, seconds since the epoch."""
    manifest: StoredTaskset | None
    """None when it is not what its digest says."""
    sizes: dict[str, int]
    """Bytes of archives that are in the store, by the digest of the task; perhaps also of other tasks."""

    @property
    def ref(self) -> str:
        return f"{self.name}#{self.digest}"

    @property
    def in_store(self) -> int:
        """Tasks whose archive is there."""
        return sum(member.digest in self.sizes for member in self.manifest.members) if self.manifest else 0


def list_tasksets(store: Store) -> list[Inventory]:
    """Every taskset, the newest first. Raises PlatformError `store_unreadable`."""
    read = in_order(lambda entry: _read(entry, store), store.list(layout.tasksets()), threads=store.parallel)
    found = [inventory for inventory in read if inventory is not None]
    digests = {member.digest for each in found if each.manifest for member in each.manifest.members}
    sizes = stored_sizes(digests, store) if digests else {}
    return sorted(
        (replace(each, sizes=sizes) for each in found), key=lambda each: (-each.published, each.ref)
    )


def show_taskset(ref: str, store: Store) -> Inventory:
    """One taskset by `name#digest` or a prefix of that. Raises as `read_manifest`, also for a broken one."""
    entry, manifest = find_manifest(ref, store)
    sizes = stored_sizes((member.digest for member in manifest.members), store)
    return Inventory(manifest.name, manifest.digest, entry.modified, manifest, sizes)


def _read(entry: Entry, store: Store) -> Inventory | None:
    found = _KEY.fullmatch(entry.key)
    try:
        data = store.get(entry.key)
    except KeyNotFound:
        return None  # removed since the listing began
    name, digest = found.groups() if found else (entry.key, "")
    return Inventory(name, digest, entry.modified, check_manifest(entry.key, data), {})
