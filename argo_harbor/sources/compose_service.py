"""One service of a compose file: which of its keys become what of a container, and why others cannot."""

from __future__ import annotations

import math
import posixpath
from collections.abc import Callable
from typing import Any, NamedTuple

from argo_harbor.model.services import HealthProbe, Service, ServiceMount, ServiceValue
from argo_harbor.model.task import MAIN_SERVICE, TaskConfig
from argo_harbor.model.taskset import ImageSource
from argo_harbor.sources.compose_environment import read_environment
from argo_harbor.sources.compose_mounts import read_mounts
from argo_harbor.sources.compose_notes import ANOTHER_WAY, Notes
from argo_harbor.sources.compose_values import Known, megabytes, number, port, scalar, seconds, words

DOCKERFILE = "Dockerfile"

IGNORED = frozenset(
    {
        "annotations",
        "attach",
        "container_name",
        "depends_on",
        "expose",
        "hostname",
        "init",
        "labels",
        "logging",
        "networks",
        "ports",
        "pull_policy",
        "restart",
        "stdin_open",
        "stop_grace_period",
        "stop_signal",
        "tty",
    }
)
"""Keys that change nothing that a task can see in a pod, or that are read elsewhere."""
_OF_BOTH = IGNORED | {"build", "command", "entrypoint", "environment", "image", "volumes", "working_dir"}
_OF_MAIN = _OF_BOTH | {"cpus", "deploy", "mem_limit", "platform", "tmpfs"}
_OF_SERVICES = _OF_MAIN | {"healthcheck", "shm_size", "user"}

_PLATFORMS = "is the platform's to decide, not a task's"
_REASONS = {
    "blkio_config": _PLATFORMS,
    "cap_add": "asks for capabilities, which no container beside an agent gets",
    "cap_drop": "changes capabilities, which are the same for every container beside an agent",
    "cgroup": _PLATFORMS,
    "cgroup_parent": _PLATFORMS,
    "configs": "reads configs, which are files of this machine: copy them into the image",
    "credential_spec": "is for Windows containers",
    "device_cgroup_rules": _PLATFORMS,
    "devices": "asks for devices of the machine",
    "dns": "names resolvers; the names that a pod resolves are the platform's and those of its services",
    "dns_opt": "changes how names are resolved, which is the platform's to decide",
    "dns_search": "changes how names are resolved, which is the platform's to decide",
    "env_file": "reads a file of variables: write them under environment",
    "extends": "extends another service: write the whole service here, or use YAML anchors",
    "external_links": "links to containers outside of the task",
    "extra_hosts": "names other machines; every container of a pod has the names of the services only",
    "gpus": "asks for GPUs, which only the agent's container gets, by environment.gpus of task.toml",
    "group_add": "changes groups: set them up in the image",
    "healthcheck": "is read of services only; main has [environment.healthcheck] in task.toml",
    "ipc": "shares memory with other containers or the machine",
    "isolation": "is for Windows containers",
    "links": "links to a service by another name: use the service's own name and depends_on",
    "mem_reservation": "is not mapped: write deploy.resources.limits.memory or mem_limit",
    "memswap_limit": "is about swap, which pods have none of",
    "network_mode": "changes the network, which all containers of a pod share",
    "oom_score_adj": _PLATFORMS,
    "pid": "shares processes with other containers or the machine",
    "pids_limit": _PLATFORMS,
    "privileged": "asks for all rights on the machine, which no container beside an agent gets",
    "profiles": "starts only when a profile is chosen, which nobody does here",
    "read_only": "wants a read-only root, which is not mapped",
    "runtime": _PLATFORMS,
    "scale": "asks for several containers of one service",
    "secrets": "reads secrets: give them to a variable, as environment: NAME=${NAME}, and grant the name",
    "security_opt": "changes what protects the machine, which is the platform's to decide",
    "shm_size": "is read of services only",
    "sysctls": "changes the kernel's settings, which is the platform's to decide",
    "ulimits": "changes limits of processes, which is the platform's to decide",
    "user": "is read of services only; main has agent.user and verifier.user in task.toml",
    "userns_mode": _PLATFORMS,
    "uts": _PLATFORMS,
    "volumes_from": "mounts another container's folders: share a named volume instead",
}
_BUILD_KEYS = ("context", "dockerfile", "args", "target", "labels", "tags", "pull", "platforms", "no_cache")
_BUILD_REASONS = {
    "additional_contexts": "needs more than one context: put the files into the one",
    "cache_from": "names caches, which are the platform's: take it out",
    "dockerfile_inline": "holds a Dockerfile: write it into a file beside its context",
    "secrets": "names build secrets of this machine: mount them in the Dockerfile by id, and the request "
    "gives them",
    "ssh": "needs keys of this machine",
}
_KEEP_ALIVE = (
    ("sleep", "infinity"),
    ("sh", "-c", "sleep infinity"),
    ("bash", "-c", "sleep infinity"),
    ("tail", "-f", "/dev/null"),
    ("sh", "-c", "tail -f /dev/null"),
)
"""Commands that only keep a container from ending: the sandbox needs none."""


class Build(NamedTuple):
    """What an image is built from."""

    context: str
    """Relative to the task folder."""
    dockerfile: str = DOCKERFILE
    """Relative to the context."""
    target: str = ""
    arguments: tuple[tuple[str, str], ...] = ()


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
    notes.only(where, table, _OF_SERVICES, _REASONS)
    _check_platform(where, table, notes)
    entrypoint, command = _commands(where, table, notes)
    user, group = notes.tried(f"{where}.user", _user, table.get("user"), _NOBODY)
    cpus, memory = _resources(where, table, notes)
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
        probe=_probe(f"{where}.healthcheck", table.get("healthcheck"), notes),
        cpus=cpus,
        memory_mb=memory,
        mounts=read_mounts(where, table, reading.volumes, notes),
    )


def read_main(table: dict[str, Any], config: TaskConfig, reading: Reading) -> Main:
    """What the file changes about `main`, which Harbor sets up from task.toml."""
    notes = reading.notes
    where = f"services.{MAIN_SERVICE}"
    notes.only(where, table, _OF_MAIN, _REASONS)
    _check_platform(where, table, notes)
    for key in ("command", "entrypoint"):
        value = _words(f"{where}.{key}", table.get(key), notes)
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
        build = _build(f"{where}.build", table["build"], reading)
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
        return _build(f"{where}.build", table["build"], reading)
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


def _build(key: str, value: object, reading: Reading) -> Build | None:
    notes = reading.notes
    table = (
        {"context": value} if isinstance(value, str) else notes.mapping(key, value, "a folder or a mapping")
    )
    notes.only(key, table, _BUILD_KEYS, _BUILD_REASONS)
    context = _inside(f"{key}.context", table.get("context", "."), reading.folder, notes)
    if context is None:
        return None
    dockerfile = _inside(f"{key}.dockerfile", table.get("dockerfile", DOCKERFILE), context, notes)
    if dockerfile is None:
        return None
    if dockerfile not in reading.paths:
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


def _words(key: str, value: object, notes: Notes) -> tuple[str, ...]:
    nothing: tuple[str, ...] = ()
    return notes.tried(key, words, value, nothing) if value else nothing


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


_DEFAULT_SECONDS = {"interval": 30.0, "timeout": 30.0, "start_period": 0.0}
_LONGEST_PERIOD = 5
"""Seconds between two looks: a service that takes long to start is still noticed soon after."""
_LEAST_PATIENCE = 60.0
_SLOWER = 2
"""Times as long as the file says may a service take, and at least a minute: a node that is busy with other
trials must not look like a broken service."""


def _probe(key: str, value: object, notes: Notes) -> HealthProbe | None:
    table = notes.mapping(key, value)
    known = ("test", "interval", "timeout", "retries", "start_period", "start_interval", "disable")
    notes.only(key, table, known, {})
    if not table or table.get("disable") is True:
        return None
    command = _test(key, table.get("test"), notes)
    if not command:
        return None
    times = {
        name: notes.tried(f"{key}.{name}", seconds, table[name], default) if name in table else default
        for name, default in _DEFAULT_SECONDS.items()
    }
    retries = notes.tried(f"{key}.retries", number, table["retries"], 3.0) if "retries" in table else 3.0
    period = max(1, min(_LONGEST_PERIOD, round(times["interval"])))
    patience = max(_LEAST_PATIENCE, _SLOWER * (times["start_period"] + retries * times["interval"]))
    return HealthProbe(
        command=command,
        period_seconds=period,
        timeout_seconds=max(1, math.ceil(times["timeout"])),
        failures=max(1, math.ceil(patience / period)),
    )


def _test(key: str, test: object, notes: Notes) -> tuple[str, ...]:
    if isinstance(test, str):
        return ("/bin/sh", "-c", notes.tried(f"{key}.test", scalar, test, ""))
    parts = _words(f"{key}.test", test, notes)
    if parts[:1] == ("NONE",):
        return ()
    if parts[:1] == ("CMD-SHELL",) and len(parts) == 2:
        return ("/bin/sh", "-c", parts[1])
    if parts[:1] == ("CMD",) and len(parts) > 1:
        return parts[1:]
    notes.refuse(f"{key}.test", "must be CMD with a command, CMD-SHELL with one text, or NONE", "correct it")
    return ()


def _resources(where: str, table: dict[str, Any], notes: Notes) -> tuple[float | None, int | None]:
    """Cpus and MiB that the service may use."""
    cpus: object = table.get("cpus")
    memory: object = table.get("mem_limit")
    limits = _limits(where, table, notes)
    places = (f"{where}.deploy.resources.limits", where)
    cpus, at = (limits["cpus"], places[0]) if "cpus" in limits else (cpus, places[1])
    found_cpus = notes.tried(f"{at}.cpus", number, cpus, None) if cpus is not None else None
    if "memory" in limits:
        return found_cpus, notes.tried(f"{places[0]}.memory", megabytes, limits["memory"], None)
    return found_cpus, notes.tried(
        f"{where}.mem_limit", megabytes, memory, None
    ) if memory is not None else None


def _limits(where: str, table: dict[str, Any], notes: Notes) -> dict[str, Any]:
    deploy = notes.mapping(f"{where}.deploy", table.get("deploy"))
    allowed = ("resources", "restart_policy", "replicas", "labels", "update_config", "mode")
    notes.only(f"{where}.deploy", deploy, allowed, {})
    if deploy.get("replicas", 1) != 1 or deploy.get("mode", "replicated") != "replicated":
        notes.refuse(f"{where}.deploy.replicas", _REASONS["scale"])
    resources = notes.mapping(f"{where}.deploy.resources", deploy.get("resources"))
    notes.only(f"{where}.deploy.resources", resources, ("limits", "reservations"), {})
    for kind in ("limits", "reservations"):
        table_of = notes.mapping(f"{where}.deploy.resources.{kind}", resources.get(kind))
        reasons = {"devices": _REASONS["gpus"], "pids": _PLATFORMS}
        notes.only(f"{where}.deploy.resources.{kind}", table_of, ("cpus", "memory"), reasons)
    chosen = resources.get("limits") or resources.get("reservations")
    return chosen if isinstance(chosen, dict) else {}


def _check_resources_of_main(where: str, table: dict[str, Any], config: TaskConfig, notes: Notes) -> None:
    cpus, memory = _resources(where, table, notes)
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
