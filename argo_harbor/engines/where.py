"""Where the embedded engine keeps its store on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from argo_harbor.errors import PlatformError
from argo_harbor.store.directory import DirectoryStore


def store_root(flag: Path | None = None, environment: Mapping[str, str] | None = None) -> tuple[Path, str]:
    """The root folder and where that was said: `--store`, `ARGO_HARBOR_STORE` or the user's data folder.

    The folder need not exist.

    Raises PlatformError `store_write_failed` where it would lie in a home or a current folder that there is
    not.
    """
    env = os.environ if environment is None else environment
    try:
        if flag is not None:
            return flag.expanduser().absolute(), "--store"
        if env.get("ARGO_HARBOR_STORE"):
            return Path(env["ARGO_HARBOR_STORE"]).expanduser().absolute(), "ARGO_HARBOR_STORE"
        data = env.get("XDG_DATA_HOME") or ""
        if Path(data).is_absolute():
            return Path(data) / "argo-harbor", "XDG_DATA_HOME"
        return Path.home() / ".local" / "share" / "argo-harbor", "default"
    except (RuntimeError, OSError) as error:
        raise PlatformError(
            "store_write_failed",
            f"there is no place for the local store: {str(error).rstrip('.')}",
            "name a folder with --store or ARGO_HARBOR_STORE",
        ) from error


def local_store(flag: Path | None = None, environment: Mapping[str, str] | None = None) -> DirectoryStore:
    """The store of the embedded engine: `<root>/local`."""
    return DirectoryStore(store_root(flag, environment)[0] / "local")
