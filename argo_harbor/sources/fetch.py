"""Brings a published task back from a store, as runners and the engine's image builds need it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from argo_harbor.errors import PlatformError
from argo_harbor.sources.unpack import unpack
from argo_harbor.store import layout
from argo_harbor.store.base import KeyNotFound, Store


def fetch_task(store: Store, digest: str, folder: Path) -> None:
    """Unpack a published task into the new folder `folder`; its content digest is checked.

    Raises: PlatformError `plan_unreadable` when the archive is not in the store, Refused when it is not what
    its digest says.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder.parent, suffix=".tar.gz") as archive:
        try:
            store.get_file(layout.task_archive(digest), Path(archive.name))
        except KeyNotFound as error:
            raise PlatformError(
                "plan_unreadable", f"the archive of task {digest[:12]} is not in {store.name}", "submit again"
            ) from error
        unpack(Path(archive.name), folder, digest=digest)
