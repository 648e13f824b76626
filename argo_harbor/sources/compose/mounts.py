"""The folders of a service that are not its image's: named volumes that services share, and memory.

Folders of a machine are no part of a task's image, and a pod runs on another one: they are refused.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Any

from argo_harbor.model.services import ServiceMount
from argo_harbor.sources.compose.notes import Notes
from argo_harbor.sources.compose.values import megabytes, scalar

LOGS = "harbor-logs"
"""Stands for the folders that old tasks mount for Harbor's logs, which every sandbox has anyway."""
_VOLUME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*")
_PATH = re.compile(r"(/[A-Za-z0-9._@-]+)+")
_SHARED_MEMORY = "/dev/shm"
_RESERVED = ("/opt/opensandbox", "/proc", "/sys", "/dev", "/etc/hosts", "/etc/resolv.conf")


def read_mounts(
    where: str, table: dict[str, Any], volumes: frozenset[str], notes: Notes
) -> tuple[ServiceMount, ...]:
    """Each path once; `volumes` are the names that the file declares."""
    found: dict[str, ServiceMount] = {}
    for key, mount in _mounts(where, table, volumes, notes):
        # Shared memory is the one folder of devices that a container may have larger.
        if mount.path != _SHARED_MEMORY and (
            not _PATH.fullmatch(mount.path) or mount.path.startswith(_RESERVED)
        ):
            notes.refuse(key, f"{mount.path} cannot be a folder of its own", "mount another path")
            continue
        if found.setdefault(mount.path, mount) != mount:
            notes.refuse(key, f"mounts {mount.path} twice", "mount it once")
    return tuple(found[path] for path in sorted(found))


def _mounts(
    where: str, table: dict[str, Any], volumes: frozenset[str], notes: Notes
) -> Iterator[tuple[str, ServiceMount]]:
    for position, entry in enumerate(notes.items(f"{where}.volumes", table.get("volumes"))):
        key = f"{where}.volumes[{position}]"
        mount = _long(key, entry, notes) if isinstance(entry, dict) else _short(key, entry, notes)
        if mount is None:
            continue
        if mount.volume and mount.volume not in volumes:
            notes.refuse(key, f"names the volume {mount.volume}, which the file does not declare")
        yield key, mount
    tmpfs = table.get("tmpfs")
    for position, entry in enumerate(
        [tmpfs] if isinstance(tmpfs, str) else notes.items(f"{where}.tmpfs", tmpfs)
    ):
        key = f"{where}.tmpfs[{position}]"
        path, _, options = notes.tried(key, scalar, entry, "").partition(":")
        size = next((each[5:] for each in options.split(",") if each.startswith("size=")), None)
        limit = notes.tried(key, megabytes, size, 0) if size is not None else 0
        yield key, _mount(path=_normal(path), size_mb=limit)
    if table.get("shm_size") is not None:
        key = f"{where}.shm_size"
        limit = notes.tried(key, megabytes, table["shm_size"], 0)
        yield key, _mount(path=_SHARED_MEMORY, size_mb=limit)


def _short(key: str, entry: object, notes: Notes) -> ServiceMount | None:
    source, *rest = notes.tried(key, scalar, entry, "").split(":")
    if source == LOGS:
        return None
    if not rest or not _VOLUME.fullmatch(source):
        _refuse_bind(key, notes)
        return None
    return _mount(path=_normal(rest[0]), volume=source, read_only="ro" in rest[1:], size_mb=0)


def _long(key: str, entry: dict[str, Any], notes: Notes) -> ServiceMount | None:
    kind, source = entry.get("type", "volume"), entry.get("source")
    notes.only(key, entry, ("type", "source", "target", "read_only", "tmpfs", "bind", "volume"), {})
    path = _normal(notes.tried(f"{key}.target", scalar, entry.get("target"), ""))
    if source == LOGS:
        return None
    if kind == "tmpfs":
        size = notes.mapping(f"{key}.tmpfs", entry.get("tmpfs")).get("size")
        limit = notes.tried(f"{key}.tmpfs.size", megabytes, size, 0) if size is not None else 0
        return _mount(path=path, size_mb=limit)
    if kind != "volume" or not isinstance(source, str) or not _VOLUME.fullmatch(source):
        _refuse_bind(key, notes)
        return None
    return _mount(path=path, volume=source, read_only=entry.get("read_only") is True, size_mb=0)


def _refuse_bind(key: str, notes: Notes) -> None:
    notes.refuse(
        key,
        "mounts a folder or file of the machine that runs compose, which a pod does not have",
        "copy the files into the image (COPY in its Dockerfile), or share a named volume",
    )


def _normal(path: str) -> str:
    return posixpath.normpath(path) if path.startswith("/") else path


def _mount(**fields: Any) -> ServiceMount:
    # Unchecked, because a path that is none becomes a finding and no exception.
    return ServiceMount.model_construct(**fields)
