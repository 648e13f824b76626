"""What a pod is told by its surroundings: the platform's settings, the store's credentials, its own identity.

Every pod command starts here. Settings and credentials are mounted files, the identity comes in environment
variables; `workflow.names` spells where all of it is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from argo_harbor.errors import PlatformError
from argo_harbor.model.platform import Platform
from argo_harbor.settings.platform import read_platform
from argo_harbor.store import layout
from argo_harbor.store.base import Store
from argo_harbor.workflow import names

PLATFORM_FILE = "platform.toml"


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod of a run."""

    platform: Platform
    """As it is in the cluster now; what a run uses of it besides the store stands in its plan."""
    namespace: str
    uid: str
    node: str
    workflow_uid: str
    """Of the workflow that the run is: in a part of a split run, of the parent."""
    credentials: Path
    """Folder with the store's credentials, one file each."""

    def store(self) -> Store:
        """The object store, at the root of this namespace. Raises PlatformError."""
        from argo_harbor.store.opening import open_store

        return open_store(self.platform, namespace=self.namespace, credentials=self.credentials)


def read_pod(
    environ: Mapping[str, str] | None = None,
    *,
    platform: Path = Path(names.PLATFORM_PATH),
    credentials: Path = Path(names.STORE_PATH),
) -> Pod:
    """This pod. `platform` and `credentials` are the folders where the ConfigMap and the Secret are mounted.

    Raises: Refused `invalid_platform`; PlatformError `platform_not_configured` outside of a pod of ours.
    """
    environ = os.environ if environ is None else environ
    wanted = (names.POD_UID_ENV, names.NAMESPACE_ENV, names.WORKFLOW_UID_ENV)
    if lacking := [name for name in wanted if not environ.get(name)]:
        raise PlatformError(
            "platform_not_configured",
            f"{', '.join(lacking)} not set: this is no pod of a compiled workflow",
            "submit the workflow; its pods run this command",
        )
    return Pod(
        platform=read_platform(platform / PLATFORM_FILE),
        namespace=environ[names.NAMESPACE_ENV],
        uid=environ[names.POD_UID_ENV],
        node=environ.get(names.NODE_ENV, ""),
        workflow_uid=environ[names.WORKFLOW_UID_ENV],
        credentials=credentials,
    )


def claim_run(store: Store, run_id: str, workflow_uid: str) -> None:
    """Mark the run as this workflow's, unless an older mark says that it is another's.

    A workflow that was deleted and made anew under the same name has another UID: its results would mix with
    those of the first. Of two that start at once the earlier mark wins, by the store's clock.

    Raises: PlatformError `run_id_reused`, or that of the store.
    """
    mine = layout.workflow_mark(run_id, workflow_uid)
    if not store.exists(mine):
        store.put(mine, b"")
    marks = list(store.list(layout.workflow_marks(run_id)))
    first = min(marks, key=lambda mark: (mark.modified, mark.key))
    if first.key != mine:
        raise PlatformError(
            "run_id_reused",
            f"{run_id} belongs to the workflow {first.key.rpartition('/')[2]}, this is {workflow_uid}",
            "submit under another name: a name is used once for a run",
        )
