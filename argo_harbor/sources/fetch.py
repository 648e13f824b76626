"""Published tasks in a store: which are there, and how one comes back, as runners and builds need it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from argo_harbor.errors import PlatformError
from argo_harbor.sources.archive import LEAST_BYTES
from argo_harbor.sources.unpack import unpack
from argo_harbor.store import layout
from argo_harbor.store.base import KeyNotFound, Store
from argo_harbor.store.wanted import list_wanted


def stored_sizes(digests: Iterable[str], store: Store) -> dict[str, int]:
    """Bytes of the archives of these tasks, by digest; those that are not in the store are left out, and what
    is too small for an archive is none.

    Raises PlatformError `store_unreadable`.
    """
    keys = {layout.task_archive(digest): digest for digest in digests}
    return {
        keys[entry.key]: entry.size
        for entry in list_wanted(store, keys, folder=layout.task_archives())
        if entry.key in keys and entry.size >= LEAST_BYTES
    }


def fetch_task(store: Store, digest: str, folder: Path) -> None:
    """Unpack a published task into the new folder `folder`; its content digest is checked.

    Raises: PlatformError `plan_unreadable` when the archive is not in the store, `store_unreadable` when the
    store or the disk fails; Refused `source_unreadable` when it is not what its digest says.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder.parent, suffix=".tar.gz") as archive:
            store.get_file(layout.task_archive(digest), Path(archive.name))
            unpack(Path(archive.name), folder, digest=digest)
    except KeyNotFound as error:
        message = f"the archive of task {digest[:12]} is not in {store.name}"
        hint = "argo-harbor tasksets create publishes it again"
        raise PlatformError("plan_unreadable", message, hint) from error
    except OSError as error:
        message = f"cannot unpack task {digest[:12]} into {folder.parent}: {error.strerror or error}"
        raise PlatformError("store_unreadable", message, "free some space there") from error
