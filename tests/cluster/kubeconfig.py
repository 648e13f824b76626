"""Kubeconfigs: the cluster's own, and its context in the user's file, as kind does it.

The user's file gets the context under a name that only this cluster uses, made current; taking it out again
brings the earlier current context back.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import yaml

from tests.cluster import addresses, certificates
from tests.cluster.state import State

LISTS = ("clusters", "users", "contexts")


def write(file: Path, state: State, *, client: str, namespace: str) -> None:
    """Write a kubeconfig with one context for a client certificate of the cluster."""
    _save(file, _document(state, client=client, namespace=namespace))


def user_file() -> Path:
    """Where kubectl writes: the first file of ``KUBECONFIG``, else ``~/.kube/config``."""
    named = [part for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return Path(named[0]) if named else Path.home() / ".kube" / "config"


def merge(state: State) -> Path:
    """Put the cluster's context into the user's kubeconfig, make it current, and remember the earlier one."""
    file = user_file()
    kubeconfig = _without_us(_load(file))
    ours = _document(state, client="admin", namespace=addresses.NAMESPACE)
    for name in LISTS:
        kubeconfig[name] = [*(kubeconfig.get(name) or []), *ours[name]]
    record = state.load()
    earlier = kubeconfig.get("current-context") or ""
    if earlier != addresses.CONTEXT:
        record.earlier_context = earlier
    record.user_kubeconfig = str(file)
    state.save(record)
    kubeconfig["current-context"] = addresses.CONTEXT
    _save(file, kubeconfig)
    return file


def remove(state: State) -> None:
    """Take the context out again; a file that holds nothing else then goes too."""
    record = state.load()
    if not record.user_kubeconfig:
        return
    file = Path(record.user_kubeconfig)
    if not file.exists():
        return
    kubeconfig = _without_us(_load(file))
    if kubeconfig.get("current-context") == addresses.CONTEXT:
        kubeconfig["current-context"] = record.earlier_context
    if any(kubeconfig.get(name) for name in LISTS):
        _save(file, kubeconfig)
        return
    file.unlink()
    if file.parent == Path.home() / ".kube" and not any(file.parent.iterdir()):
        file.parent.rmdir()


def holds_us(file: Path) -> bool:
    """Whether the file knows our context."""
    return any(_is_ours(entry) for name in LISTS for entry in _load(file).get(name) or [])


def _document(state: State, *, client: str, namespace: str) -> dict[str, Any]:
    name = addresses.CONTEXT
    user = {
        "client-certificate-data": _encoded(certificates.certificate(state, client)),
        "client-key-data": _encoded(certificates.key(state, client)),
    }
    cluster = {
        "server": addresses.API_SERVER,
        "certificate-authority-data": _encoded(certificates.certificate(state, "ca")),
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}],
        "current-context": name,
    }


def _load(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {"apiVersion": "v1", "kind": "Config"}
    return yaml.safe_load(file.read_text()) or {"apiVersion": "v1", "kind": "Config"}


def _without_us(kubeconfig: dict[str, Any]) -> dict[str, Any]:
    kept = {name: [entry for entry in kubeconfig.get(name) or [] if not _is_ours(entry)] for name in LISTS}
    return kubeconfig | kept


def _is_ours(entry: dict[str, Any]) -> bool:
    return entry.get("name") == addresses.CONTEXT


def _encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


def _save(file: Path, kubeconfig: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(yaml.safe_dump(kubeconfig, sort_keys=False))
    draft.replace(file)
