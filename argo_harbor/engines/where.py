"""Where the embedded engine keeps its store on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from argo_harbor.store.directory import DirectoryStore


def store_root(flag: Path | None = None, environment: Mapping[str, str] | None = None) -> tuple[Path, str]:
    """The root folder and where that was said: `--store`, `ARGO_HARBOR_STORE` or the user's data folder.

    The folder need not exist.
    """
    env = os.environ if environment is None else environment
    if flag is not None:
        return flag.expanduser().absolute(), "--store"
    if env.get("ARGO_HARBOR_STORE"):
        return Path(env["ARGO_HARBOR_STORE"]).expanduser().absolute(), "ARGO_HARBOR_STORE"
    data = env.get("XDG_DATA_HOME") or ""
    base = Path(data) if Path(data).is_absolute() else Path.home() / ".local" / "share"
    return base / "argo-harbor", "XDG_DATA_HOME" if data else "default"


def local_store(flag: Path | None = None, environment: Mapping[str, str] | None = None) -> DirectoryStore:
    """The store of the embedded engine: `<root>/local`."""
    return DirectoryStore(store_root(flag, environment)[0] / "local")
