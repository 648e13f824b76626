"""The store as this machine sees it: submitting publishes to it from here, and downloads come from it."""

from __future__ import annotations

import base64
import binascii

from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.errors import Forbidden
from argo_harbor.cluster.paths import core
from argo_harbor.doctor.result import Result, failed, ok, skipped
from argo_harbor.doctor.server import skew_result
from argo_harbor.doctor.services import round_trip
from argo_harbor.errors import HarborError
from argo_harbor.model.platform import Platform
from argo_harbor.store.credentials import ACCESS_KEY, SECRET_KEY, Credentials
from argo_harbor.store.opening import open_store
from argo_harbor.store.patience import Patience

HERE = "store from here"
CLOCK = "store clock"
# An answer for somebody who waits in front of a terminal, not a run that depends on it.
_PATIENCE = Patience(attempts=2, total=8.0)


def store_from_here(cluster: Cluster, platform: Platform, visit: str) -> list[Result]:
    """Write, read, list and delete an object with the store's Secret, or one's own credentials.

    Raises: ClusterError.
    """
    try:
        credentials = _credentials(cluster, platform.store.secret)
    except Forbidden:
        return [skipped(HERE, f"you may not read the Secret {platform.store.secret}")]
    try:
        store = open_store(platform, credentials=credentials, namespace=cluster.namespace, patience=_PATIENCE)
        said = round_trip(store, f"{visit}-here")
    except HarborError as error:
        hint = error.hint or "set ARGO_HARBOR_STORE_ENDPOINT to where it is reached from here"
        return [failed(HERE, error.message, hint)]
    if said["error"]:
        return [failed(HERE, said["error"], "see the store's own logs")]
    return [
        ok(HERE, f"written, read, listed and deleted in {platform.store.bucket}"),
        skew_result(CLOCK, "the store's clock", said["skew"]),
    ]


def _credentials(cluster: Cluster, secret: str) -> Credentials | None:
    data = (cluster.find(core(cluster.namespace, "secrets", secret)) or {}).get("data") or {}
    try:
        keys = [base64.b64decode(data.get(key) or "").decode() for key in (ACCESS_KEY, SECRET_KEY)]
    except (binascii.Error, UnicodeDecodeError):
        return None
    return Credentials(*keys) if all(keys) else None
