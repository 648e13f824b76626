"""One service of a compose file: which of its keys become what of a container, and why others cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from argo_harbor.model.services import Service, ServiceMount, ServiceValue
from argo_harbor.model.task import MAIN_SERVICE, TaskConfig
from argo_harbor.model.taskset import ImageSource
from argo_harbor.sources.compose.build import DOCKERFILE, Build, read_build
from argo_harbor.sources.compose.environment import read_environment
from argo_harbor.sources.compose.health import read_probe
from argo_harbor.sources.compose.keys import OF_MAIN, OF_SERVICES, REASONS
from argo_harbor.sources.compose.limits import read_resources
from argo_harbor.sources.compose.mounts import read_mounts
from argo_harbor.sources.compose.notes import ANOTHER_WAY, Notes
from argo_harbor.sources.compose.values import Known, port, scalar, words

_KEEP_ALIVE = (
    ("sleep", "infinity"),
    ("sh", "-c", "sleep infinity"),
    ("bash", "-c", "sleep infinity"),
    ("tail", "-f", "/dev/null"),
    ("sh", "-c", "tail -f /dev/null"),
)
"""Commands that only keep a container from ending: the sandbox needs none."""


class Reading(NamedTuple):
    """What every service of a file is read with."""

    notes: Notes
    folder: str
    """Of the compose file, relative to the task."""
    paths: frozenset[str]
    known: Known
    volumes: frozenset[str]
    """Names that the file declares."""
    describe: Callable[[Build], ImageSource]

    def build(self, key: str, value: object) -> Build | None:
        """See `read_build`."""
        return read_build(key, value, self.notes, folder=self.folder, paths=self.paths)


class Main(NamedTuple):
    """What the file says of the agent's container."""

    image: Build | str | None
    """None for the task's own."""
    environment: tuple[ServiceValue, ...]
    mounts: tuple[ServiceMount, ...]
    working_dir: str


def read_service(name: str, table: dict[str, Any], reading: Reading) -> Service:
    """The service, worth nothing when it left findings."""
    notes = reading.notes
    where = f"services.{name}"
    notes.only(where, table, OF_SERVICES, REASONS)
    _check_platform(where, table, notes)
    entrypoint, command = _commands(where, table, notes)
    user, group = notes.tried(f"{where}.user", _user, table.get("user"), _NOBODY)
    cpus, memory = read_resources(where, table, notes)
    return Service(
        name=name,
        image=_image(where, table, reading),
        entrypoint=entrypoint,
        command=command,
        environment=read_environment(f"{where}.environment", table.get("environment"), reading.known, notes),
        working_dir=_working_dir(where, table, notes),
        user=user,
        group=group,
        ports=_ports(where, table, notes),
        probe=read_probe(f"{where}.healthcheck", table.get("healthcheck"), notes),
        cpus=cpus,
        memory_mb=memory,
        mounts=read_mounts(where, table, reading.volumes, notes),
    )


def read_main(table: dict[str, Any], config: TaskConfig, reading: Reading) -> Main:
    """What the file changes about `main`, which Harbor sets up from task.toml."""
    notes = reading.notes
    where = f"services.{MAIN_SERVICE}"
    notes.only(where, table, OF_MAIN, REASONS)
    _check_platform(where, table, notes)
    for key in ("command", "entrypoint"):
        value = notes.words(f"{where}.{key}", table.get(key))
        if value and value not in _KEEP_ALIVE:
            notes.refuse(
                f"{where}.{key}",
                "runs a program in the agent's container, which is started empty",
                "start it in a service of its own, or by [environment.healthcheck]",
            )
    _check_resources_of_main(where, table, config, notes)
    return Main(
        image=_image_of_main(where, table, config, reading),
        environment=read_environment(f"{where}.environment", table.get("environment"), reading.known, notes),
        mounts=read_mounts(where, table, reading.volumes, notes),
        working_dir=_working_dir(where, table, notes),
    )


def _image(where: str, table: dict[str, Any], reading: Reading) -> ImageSource:
    if table.get("build") is not None:
        build = reading.build(f"{where}.build", table["build"])
        return reading.describe(build) if build is not None else ImageSource(kind="dockerfile")
    reference = table.get("image")
    if reference == MAIN_SERVICE:
        return reading.describe(Build(reading.folder))
    if not isinstance(reference, str) or not reference:
        reading.notes.refuse(where, "has neither image nor build", "name an image, or a folder to build from")
        return ImageSource(kind="prebuilt")
    return ImageSource(kind="prebuilt", reference=reference)


def _image_of_main(
    where: str, table: dict[str, Any], config: TaskConfig, reading: Reading
) -> Build | str | None:
    if config.environment.docker_image:
        return None
    if table.get("build") is not None:
        return reading.build(f"{where}.build", table["build"])
    if f"{reading.folder}/{DOCKERFILE}" in reading.paths:
        return None
    image = table.get("image")
    if isinstance(image, str) and image not in ("", MAIN_SERVICE):
        return image
    reading.notes.refuse(
        where,
        "has no image: there is no Dockerfile beside the compose file",
        f"write {reading.folder}/{DOCKERFILE}, or set environment.docker_image",
    )
    return None


def _commands(
    where: str, table: dict[str, Any], notes: Notes
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    def read(key: str) -> tuple[str, ...] | None:
        return notes.tried(f"{where}.{key}", words, table[key], None) if table.get(key) is not None else None

    entrypoint, command = read("entrypoint"), read("command") or None
    if entrypoint is not None and not entrypoint:
        # Without an entrypoint the command is the whole of what runs.
        if command is None:
            notes.refuse(f"{where}.entrypoint", "takes the entrypoint away and gives no command")
        return command, None
    return entrypoint, command


_NOBODY: tuple[int | None, int | None] = (None, None)


def _user(value: object) -> tuple[int | None, int | None]:
    if value is None:
        return None, None
    user, _, group = str(value).partition(":")
    if not (user.isascii() and user.isdecimal() and (not group or (group.isascii() and group.isdecimal()))):
        raise ValueError(
            f"{value!r} names a user; a pod takes numbers, such as 1000:1000, or set USER in the image"
        )
    return int(user), int(group) if group else None


def _working_dir(where: str, table: dict[str, Any], notes: Notes) -> str:
    value = table.get("working_dir")
    if value is None:
        return ""
    path = notes.tried(f"{where}.working_dir", scalar, value, "")
    if not path.startswith("/"):
        notes.refuse(f"{where}.working_dir", "must be an absolute path", "correct the value")
    return path


def _ports(where: str, table: dict[str, Any], notes: Notes) -> tuple[int, ...]:
    found = set()
    for key in ("ports", "expose"):
        for position, entry in enumerate(notes.items(f"{where}.{key}", table.get(key))):
            found.add(notes.tried(f"{where}.{key}[{position}]", port, entry, 0))
    return tuple(sorted(found - {0}))


def _check_resources_of_main(where: str, table: dict[str, Any], config: TaskConfig, notes: Notes) -> None:
    cpus, memory = read_resources(where, table, notes)
    environment = config.environment
    if (cpus is not None and cpus != environment.cpus) or (
        memory is not None and memory != environment.memory_mb
    ):
        notes.refuse(
            f"{where}.deploy.resources",
            "differs from task.toml, where the resources of the agent's container stand",
            "set environment.cpus and environment.memory_mb there and take it out here",
        )


def _check_platform(where: str, table: dict[str, Any], notes: Notes) -> None:
    if table.get("platform") not in (None, "linux", "linux/amd64", "linux/x86_64"):
        notes.refuse(f"{where}.platform", "asks for another machine than linux/amd64", ANOTHER_WAY)
