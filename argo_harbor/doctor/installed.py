"""Whether everything is in the namespace that `install` brings, of this version, and every named Secret."""

from __future__ import annotations

from collections.abc import Iterator

from argo_harbor.cluster.client import Cluster, Json
from argo_harbor.cluster.errors import Forbidden
from argo_harbor.cluster.paths import core
from argo_harbor.cluster.platform import read_site
from argo_harbor.doctor.result import Result, failed, ok, skipped, warning
from argo_harbor.errors import PlatformError
from argo_harbor.install.manifests import VERSION, VERSION_LABEL, Object, Settings, manifests, path_of
from argo_harbor.model.platform import Platform
from argo_harbor.workflow import names

INSTALLATION = "installation"
SECRETS = "secrets"

_INSTALL = "argo-harbor install --platform FILE --apply"
_SHOWN = 4


def platform_of(cluster: Cluster) -> Platform | Result:
    """The platform that is installed, or why there is none to go by.

    Raises: Refused `invalid_platform`.
    """
    try:
        site = read_site(cluster)
    except PlatformError as error:
        return failed(INSTALLATION, error.message, error.hint)
    if site is None:
        cure = "argo-harbor install --discover -o platform.toml, fill it in, then install --apply"
        return failed(INSTALLATION, f"nothing is installed in {cluster.namespace}", cure)
    return site.platform


def installation(cluster: Cluster, platform: Platform) -> list[Result]:
    """Accounts, rights, token Secrets and ConfigMaps. Raises: ClusterError."""
    missing: list[str] = []
    other: set[str] = set()
    hidden: list[str] = []
    wanted = manifests(Settings(platform, "", {}))
    for item in wanted:
        name = f"{item['kind']}/{item['metadata']['name']}"
        try:
            found = cluster.find(path_of(item))
        except Forbidden:
            hidden.append(name)
            continue
        if found is None or not _filled(item, found):
            missing.append(name)
        elif item["kind"] != "Namespace":
            other.add(str((found["metadata"].get("labels") or {}).get(VERSION_LABEL) or "none"))
    other.discard(VERSION)
    if missing:
        return [failed(INSTALLATION, f"missing or empty: {_some(missing)}", _INSTALL)]
    if other:
        told = f"it is of version {', '.join(sorted(other))}, this program {VERSION}"
        return [warning(INSTALLATION, told, _INSTALL)]
    if len(hidden) == len(wanted):
        return [skipped(INSTALLATION, "you may not look", "ask the namespace's admin to run the doctor")]
    unseen = f", {len(hidden)} you may not see" if hidden else ""
    return [ok(INSTALLATION, f"{len(wanted) - len(hidden)} objects of version {VERSION}{unseen}")]


def named_secrets(cluster: Cluster, platform: Platform) -> list[Result]:
    """The Secrets that the platform names, and their keys. Raises: ClusterError."""
    results = []
    hidden: list[str] = []
    found = 0
    for secret, keys, cure in _wanted(platform):
        try:
            data = (cluster.find(core(cluster.namespace, "secrets", secret)) or {}).get("data") or {}
        except Forbidden:
            hidden.append(secret)
            continue
        missing = [key for key in keys if not data.get(key)]
        if missing:
            results.append(failed(SECRETS, f"{secret} is missing or lacks {', '.join(missing)}", cure))
        else:
            found += 1
    if hidden and not results and not found:
        return [skipped(SECRETS, f"you may not see {_some(hidden)}")]
    unseen = f"; {_some(hidden)} you may not see" if hidden else ""
    return results or [ok(SECRETS, f"{found} with the keys that they need{unseen}")]


def _wanted(platform: Platform) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Name, keys and cure of each Secret that pods will ask for."""
    namespace = platform.namespace
    yield (
        platform.store.secret,
        ("access_key", "secret_key"),
        f"{_INSTALL} --store-access-key-file FILE --store-secret-key-file FILE",
    )
    for secret in dict.fromkeys(filter(None, (platform.secrets.registry, *platform.secrets.image_pull))):
        cure = f"kubectl -n {namespace} create secret docker-registry {secret} --docker-server …"
        yield secret, (".dockerconfigjson",), cure
    keys: dict[str, list[str]] = {}
    for model in platform.models.values():
        if model.secret:
            secret, key = model.secret.split("/", 1)
            keys.setdefault(secret, []).append(key)
    for secret, wanted in keys.items():
        files = " ".join(f"--from-file={key}=FILE" for key in dict.fromkeys(wanted))
        yield (
            secret,
            tuple(dict.fromkeys(wanted)),
            (f"kubectl -n {namespace} create secret generic {secret} {files}"),
        )


def _filled(item: Object, found: Json) -> bool:
    """Whether what others fill in is there: a token needs the cluster's controller."""
    if item["kind"] == "Secret":
        return bool((found.get("data") or {}).get("token"))
    if item["kind"] == "ConfigMap" and item["metadata"]["name"] == names.PROFILES_CONFIGMAP:
        return bool(found.get("data"))
    return bool(item["kind"] != "ConfigMap" or {*item["data"]} <= {*(found.get("data") or {})})


def _some(found: list[str]) -> str:
    rest = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ", ".join(found[:_SHOWN]) + rest
