"""Tries store and registry with the credentials at hand: in a probe pod, and the store also from here.

Objects and images that are written are named after the doctor's visit and removed again.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from argo_harbor.errors import HarborError
from argo_harbor.model.platform import Platform
from argo_harbor.store.base import KeyNotFound, Store
from argo_harbor.workflow import names

type Json = dict[str, Any]


def question_of(platform: Platform, visit: str) -> Json:
    """What a pod must be told to try them: no Secret is in it."""
    kept = platform.as_data()
    return {
        "visit": visit,
        "platform": {
            key: kept[key] for key in ("namespace", "registry", "insecure_registries", "store", "secrets")
        },
        "name": "kubernetes.default.svc",
    }


def try_store(question: Json) -> Json:
    """In a pod: write, read, list and delete an object with the mounted Secret."""
    from argo_harbor.store.opening import open_store
    from argo_harbor.store.patience import FOR_PEOPLE

    platform = Platform.from_data(question["platform"])
    try:
        store = open_store(
            platform, credentials=Path(names.STORE_PATH), namespace=platform.namespace, patience=FOR_PEOPLE
        )
        return round_trip(store, question["visit"])
    except HarborError as error:
        return {"error": error.message, "hint": error.hint}


def round_trip(store: Store, visit: str) -> Json:
    """Write, read, list and delete one object; `skew` is the store's clock minus this machine's, in seconds.

    Raises PlatformError.
    """
    key, content = f"doctor/{visit}", visit.encode()
    store.put(key, content)
    try:
        if store.get(key) != content:
            return {"error": f"{store.name} gives back other bytes than it was given"}
        if key not in [entry.key for entry in store.list("doctor/")]:
            return {"error": f"{store.name} does not list what was just written"}
        before = time.time()
        skew = store.clock() - (before + time.time()) / 2
    except KeyNotFound:
        return {"error": f"{store.name} does not have what was just written"}
    finally:
        store.delete(key)
    return {"error": "", "skew": skew}


def try_registry(question: Json) -> Json:
    """In a pod: push a tiny image where builds push, pull it back, remove its tag."""
    from argo_harbor.registry.client import Registries
    from argo_harbor.registry.credentials import BrokenConfig, logins
    from argo_harbor.registry.errors import RegistryError
    from argo_harbor.registry.push import push_and_pull

    platform = Platform.from_data(question["platform"])
    secret = platform.secrets.registry
    try:
        known = {}
        if secret:
            file = Path(names.REGISTRY_PATH) / secret / "config.json"
            if not file.is_file():
                return {
                    "error": f"the Secret {secret} is missing or has no .dockerconfigjson",
                    "secret": secret,
                }
            known = dict(logins(secret, file.read_bytes()))
        registries = Registries(logins=known, insecure=platform.insecure_registries)
        push_and_pull(registries, f"{platform.registry}/env:doctor")
    except (RegistryError, BrokenConfig) as error:
        return {"error": str(error), "secret": secret}
    return {"error": ""}
