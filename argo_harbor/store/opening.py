"""Opens the store that a platform names, for users, engines and pods."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from argo_harbor.errors import PlatformError, UsageError
from argo_harbor.model.platform import Platform
from argo_harbor.store.base import Store
from argo_harbor.store.credentials import ACCESS_KEY_ENV, SECRET_KEY_ENV, Credentials, from_environment
from argo_harbor.store.directory import DirectoryStore
from argo_harbor.store.patience import FOR_PEOPLE, FOR_PODS, Patience
from argo_harbor.store.s3 import S3Store

ENDPOINT_ENV = "ARGO_HARBOR_STORE_ENDPOINT"
"""Under which address a user reaches the store from outside the cluster."""


def open_store(
    platform: Platform,
    *,
    credentials: Credentials | Path | None,
    namespace: str,
    patience: Patience | None = None,
    environment: Mapping[str, str] | None = None,
) -> Store:
    """The store of a namespace: everything lies below `<prefix>/<namespace>/`. Nothing is sent yet.

    `credentials` are what the caller found, in a cluster's Secret, or the folder where a pod has it mounted;
    without a folder, what the user's environment holds comes first. `patience` is by default that of a pod
    with a folder, else that of people. `environment` is by default the process's.

    Raises: PlatformError `platform_not_configured` where the platform has no store or nobody has credentials,
    UsageError for an endpoint in the environment that is none.
    """
    settings = platform.store
    env = os.environ if environment is None else environment
    root = "/".join(part for part in (*settings.prefix.split("/"), namespace) if part)
    if settings.kind == "directory":
        if not settings.endpoint:
            raise _not_configured(
                "the store's folder is not named", "set store.endpoint in the platform file"
            )
        return DirectoryStore(Path(settings.endpoint) / root)
    mounted = isinstance(credentials, Path)
    endpoint = settings.endpoint if mounted else env.get(ENDPOINT_ENV) or settings.endpoint
    if not endpoint:
        raise _not_configured(
            "the store has no endpoint", f"set store.endpoint in the platform file, or {ENDPOINT_ENV}"
        )
    _check_endpoint(endpoint, from_variable=endpoint != settings.endpoint)
    found = credentials if mounted else from_environment(env) or credentials
    if found is None:
        raise _not_configured(
            f"no credentials for the store at {endpoint}", f"set {ACCESS_KEY_ENV} and {SECRET_KEY_ENV}"
        )
    try:
        return S3Store(
            endpoint,
            settings.bucket,
            root=root,
            credentials=found,
            patience=patience or (FOR_PODS if mounted else FOR_PEOPLE),
        )
    except ValueError as error:
        raise _not_configured(
            f"the store cannot be opened: {error}", "correct [store] in the platform file"
        ) from error


def _check_endpoint(endpoint: str, *, from_variable: bool) -> None:
    """The value is not repeated in the message: somebody may have written a password into it."""
    try:
        parsed = urlsplit(endpoint)
        right = (
            parsed.scheme in ("http", "https")
            and parsed.hostname
            and (parsed.port or 1) > 0
            and "@" not in parsed.netloc
            and parsed.path in ("", "/")
            and not parsed.query
            and not parsed.fragment
        )
    except ValueError:
        right = False
    if right:
        return
    hint = "write http://HOST:PORT or https://HOST:PORT, without a user or a path"
    if from_variable:
        raise UsageError("unknown_flag_value", f"{ENDPOINT_ENV} is no endpoint of an S3 server", hint)
    raise _not_configured("store.endpoint is no endpoint of an S3 server", hint)


def _not_configured(message: str, hint: str) -> PlatformError:
    return PlatformError("platform_not_configured", message, hint)
