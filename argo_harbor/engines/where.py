"""Where a command works: on this machine or in a cluster, with which settings, and on which store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from argo_harbor.cluster.connect import connect, has_kubeconfig
from argo_harbor.cluster.platform import read_site
from argo_harbor.errors import PlatformError, UsageError
from argo_harbor.settings.overview import Setting
from argo_harbor.settings.platform import platform_file
from argo_harbor.settings.site import Site
from argo_harbor.store.directory import DirectoryStore

if TYPE_CHECKING:
    from argo_harbor.cluster.client import Cluster
    from argo_harbor.engines.base import Engine
    from argo_harbor.engines.place import Place

INSTALL_HINT = "argo-harbor install --platform FILE --apply sets a cluster up"


class Chosen(NamedTuple):
    engine: Engine
    site: Site
    """The settings that hold there."""
    because: str
    """Why this machine, where a cluster was looked at; empty otherwise."""
    cluster: Cluster | None = None
    """None for this machine."""


def choose(place: Place, environment: Mapping[str, str] | None = None) -> Chosen:
    """The engine that a command uses, and the settings in force.

    Without a word about it: this machine when there is no kubeconfig, the cluster of the current context when
    a platform is installed there, this machine when none is. A cluster that does not answer is an error: to
    run elsewhere then must be somebody's decision.

    Raises PlatformError `platform_not_configured`, `platform_unreachable`; UsageError `bad_usage` for flags
    that exclude one another; Refused for settings that are broken.
    """
    env = os.environ if environment is None else environment
    name = place.engine
    cluster_flags = [
        flag for flag, value in (("--context", place.context), ("--namespace", place.namespace)) if value
    ]
    if place.store is not None:
        if name == "argo" or cluster_flags:
            other = "--engine argo" if name == "argo" else cluster_flags[0]
            raise UsageError("bad_usage", f"--store and {other} exclude one another", "leave one of them out")
        name = "local"
    if name == "local":
        if cluster_flags:
            raise UsageError(
                "bad_usage", f"--engine local and {cluster_flags[0]} exclude one another", "leave one out"
            )
        return _local(place, env)
    if name is None and not cluster_flags and not has_kubeconfig():
        return _local(place, env)
    cluster, installed = _look(place, env)
    if installed is None and name is None:
        because = f"no platform in namespace {cluster.namespace} of context {cluster.context}"
        return _local(place, env)._replace(because=because)
    return _argo(place, env, cluster, installed)


def _local(place: Place, env: Mapping[str, str]) -> Chosen:
    from argo_harbor.engines.local import LocalEngine

    engine = LocalEngine.open(store_root(place.store, env)[0])
    return Chosen(engine, Site.of_files(place.platform, env), "")


def _look(place: Place, env: Mapping[str, str]) -> tuple[Cluster, Site | None]:
    """The cluster, in the namespace that was named, and what is installed there."""
    namespace = place.namespace
    if namespace is None and platform_file(place.platform, env) is not None:
        namespace = Site.of_files(place.platform, env).platform.namespace
    if not has_kubeconfig():
        raise PlatformError(
            "platform_not_configured", "there is no kubeconfig, and so no cluster", INSTALL_HINT
        )
    cluster = connect(place.context, namespace)
    return cluster, read_site(cluster)


def _argo(place: Place, env: Mapping[str, str], cluster: Cluster, installed: Site | None) -> Chosen:
    from argo_harbor.engines.argo import ArgoEngine

    if installed is None:
        raise PlatformError(
            "platform_not_configured",
            f"no platform is installed in namespace {cluster.namespace} of context {cluster.context}",
            INSTALL_HINT,
        )
    site = installed
    if platform_file(place.platform, env) is not None:
        named = Site.of_files(place.platform, env)
        platform = named.platform.model_copy(update={"namespace": cluster.namespace})
        site = Site(platform, named.origin, named.file, named.env)
    return Chosen(ArgoEngine(cluster, site, environ=env), site, "", cluster)


def settings_of(place: Place, chosen: Chosen) -> list[Setting]:
    """Engine, cluster and store, and what chose them."""
    engine = chosen.engine
    by = "--engine" if place.engine else "--store" if place.store else chosen.because or "default"
    cluster = chosen.cluster
    if cluster is None:
        root, origin = store_root(place.store)
        return [Setting("store", str(root), origin), Setting("engine", engine.name, by)]
    context = "--context" if place.context else "current kube context"
    namespace = "--namespace" if place.namespace else context
    return [
        Setting("store", f"{chosen.site.platform.store.endpoint}", chosen.site.origin),
        Setting("engine", engine.name, by if place.engine else f"{context} has a platform"),
        Setting("context", cluster.context, context),
        Setting("namespace", cluster.namespace, namespace),
    ]


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
