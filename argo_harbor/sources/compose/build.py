"""What the image of a service is built from: always files of the task, below its compose file."""

from __future__ import annotations

import posixpath
from collections.abc import Collection
from typing import NamedTuple

from argo_harbor.sources.compose.environment import read_environment
from argo_harbor.sources.compose.notes import Notes

DOCKERFILE = "Dockerfile"
COMPOSE = "docker-compose.yaml"

_KEYS = ("context", "dockerfile", "args", "target", "labels", "tags", "pull", "platforms", "no_cache")
_REASONS = {
    "additional_contexts": "needs more than one context: put the files into the one",
    "cache_from": "names caches, which are the platform's: take it out",
    "dockerfile_inline": "holds a Dockerfile: write it into a file beside its context",
    "secrets": "names build secrets of this machine: mount them in the Dockerfile by id, and the request "
    "gives them",
    "ssh": "needs keys of this machine",
}


class Build(NamedTuple):
    """What an image is built from."""

    context: str
    """Relative to the task folder."""
    dockerfile: str = DOCKERFILE
    """Relative to the context."""
    target: str = ""
    arguments: tuple[tuple[str, str], ...] = ()


def read_build(key: str, value: object, notes: Notes, *, folder: str, paths: Collection[str]) -> Build | None:
    """The build of a service; None and a finding when there is none. `folder` is that of the compose file,
    `paths` are the task's files."""
    table = (
        {"context": value} if isinstance(value, str) else notes.mapping(key, value, "a folder or a mapping")
    )
    notes.only(key, table, _KEYS, _REASONS)
    context = _inside(f"{key}.context", table.get("context", "."), folder, notes)
    if context is None:
        return None
    dockerfile = _inside(f"{key}.dockerfile", table.get("dockerfile", DOCKERFILE), context, notes)
    if dockerfile is None:
        return None
    if dockerfile not in paths:
        notes.refuse(key, f"there is no {dockerfile}", "correct the folder, or write the Dockerfile")
        return None
    target = table.get("target") or ""
    arguments = read_environment(f"{key}.args", table.get("args"), None, notes)
    for argument in arguments:
        if argument.text is None:
            notes.refuse(f"{key}.args.{argument.name}", "has no value", "write the value")
    if not isinstance(target, str):
        notes.refuse(f"{key}.target", "must be the name of a stage", "correct the value")
        target = ""
    return Build(
        context,
        posixpath.relpath(dockerfile, context),
        target,
        tuple((argument.name, argument.text or "") for argument in arguments),
    )


def _inside(key: str, value: object, folder: str, notes: Notes) -> str | None:
    """The path below `folder`, relative to the task; None and a finding when it is none."""
    text = str(value)
    path = posixpath.normpath(posixpath.join(folder, text))
    if not isinstance(value, str) or "://" in text or (path != folder and not path.startswith(f"{folder}/")):
        notes.refuse(key, f"{text!r} is no path below {folder}", "keep what is built below the compose file")
        return None
    return path
