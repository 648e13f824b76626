"""The surroundings of a pod, for tests of what runs in one: a platform whose store is a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from argo_harbor.model.platform import Platform
from argo_harbor.runner.pod import Pod

NAMESPACE = "argo-harbor"
WORKFLOW_UID = "77777777-0000-4000-8000-000000000001"


def store_root(folder: Path) -> Path:
    """Where the store of a pod's namespace lies."""
    return folder / NAMESPACE


def make_pod(folder: Path, *, uid: str = "feedc0de-0000-4000-8000-000000000001", **platform: Any) -> Pod:
    store = {"kind": "directory", "endpoint": str(folder)}
    return Pod(
        platform=Platform.from_data({"store": store, **platform}),
        namespace=NAMESPACE,
        uid=uid,
        node="node-1",
        workflow_uid=WORKFLOW_UID,
        credentials=folder,
    )
