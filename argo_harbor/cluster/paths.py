"""Paths of the kinds that we touch, as the Kubernetes API writes them."""

from __future__ import annotations

from urllib.parse import quote

CORE = "/api/v1"
ARGO = "/apis/argoproj.io/v1alpha1"


def core(namespace: str, kind: str, name: str = "", part: str = "") -> str:
    """`kind` in the plural: pods, secrets, configmaps, events, …; `part` such as `log`."""
    return _path(f"{CORE}/namespaces/{quote(namespace)}/{kind}", name, part)


def workflows(namespace: str, name: str = "") -> str:
    return _path(f"{ARGO}/namespaces/{quote(namespace)}/workflows", name)


def grouped(group: str, namespace: str, kind: str, name: str = "") -> str:
    """`group` with its version: `networking.k8s.io/v1`."""
    return _path(f"/apis/{group}/namespaces/{quote(namespace)}/{kind}", name)


def cluster_wide(group: str, kind: str, name: str = "") -> str:
    """`group` with its version, `v1` for the core."""
    root = CORE if group == "v1" else f"/apis/{group}"
    return _path(f"{root}/{kind}", name)


def _path(base: str, name: str, part: str = "") -> str:
    return "/".join([base, *([quote(name, safe="")] if name else []), *([part] if part else [])])
