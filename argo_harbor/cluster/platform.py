"""The settings that a cluster itself holds: ConfigMaps that `install` writes and every user of the namespace
reads."""

from __future__ import annotations

from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.errors import ClusterError, Forbidden
from argo_harbor.cluster.paths import core
from argo_harbor.errors import PlatformError
from argo_harbor.settings.site import Installed, Site
from argo_harbor.workflow import names

_SUFFIX = ".toml"


def read_site(cluster: Cluster) -> Site | None:
    """Platform and profiles of the cluster's namespace; None where none are installed.

    The platform's namespace is the one that it was found in, whatever the file says.

    Raises:
        PlatformError: `platform_unreachable` when the API server does not answer or does not let us read.
        Refused: `invalid_platform`.
    """
    data = _config_map(cluster, names.PLATFORM_CONFIGMAP)
    if data is None or names.PLATFORM_KEY not in data:
        return None
    profiles = _config_map(cluster, names.PROFILES_CONFIGMAP) or {}
    texts = {
        key.removesuffix(_SUFFIX): text for key, text in sorted(profiles.items()) if key.endswith(_SUFFIX)
    }
    site = Site.installed_in(
        data[names.PLATFORM_KEY],
        _named(cluster, names.PLATFORM_CONFIGMAP),
        Installed(texts, _named(cluster, names.PROFILES_CONFIGMAP)),
    )
    return Site(
        site.platform.model_copy(update={"namespace": cluster.namespace}),
        site.origin,
        installed=site.installed,
    )


def _config_map(cluster: Cluster, name: str) -> dict[str, str] | None:
    try:
        found = cluster.find(core(cluster.namespace, "configmaps", name))
    except Forbidden as error:
        raise PlatformError(
            "platform_unreachable",
            f"the platform's settings cannot be read: {error.message}",
            f"ask for the right to read ConfigMaps in {cluster.namespace}, or name another --namespace",
        ) from error
    except ClusterError as error:
        raise PlatformError(
            "platform_unreachable",
            f"context {cluster.context}: {error.message}",
            "check the cluster, name another with --context, or run here with --engine local",
        ) from error
    if found is None:
        return None
    return {str(key): str(value) for key, value in (found.get("data") or {}).items()}


def _named(cluster: Cluster, name: str) -> str:
    place = f" of context {cluster.context}" if cluster.context else ""
    return f"ConfigMap {name} in namespace {cluster.namespace}{place}"
