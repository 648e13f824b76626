"""Reads `environment/docker-compose.yaml`: the containers that a task wants beside the agent's.

Harbor merges that file over its own, in which the service `main` is the agent's container. What a pod can
hold is mapped: images and builds, commands, variables, healthchecks, order, resources, shared folders.
Everything else is a finding, all of them at once: a container that lacks what its author asked for would
give scores that mean something else. Used by `images`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from argo_harbor.model.services import MAX_SERVICES, RESERVED_PORTS, Compose, Service
from argo_harbor.model.task import MAIN_SERVICE, TaskConfig
from argo_harbor.model.task_env import requested_variable
from argo_harbor.model.taskset import ImageSource
from argo_harbor.sources.compose.build import COMPOSE, Build
from argo_harbor.sources.compose.document import BrokenCompose, read_yaml
from argo_harbor.sources.compose.mounts import LOGS
from argo_harbor.sources.compose.notes import Notes
from argo_harbor.sources.compose.order import start_order
from argo_harbor.sources.compose.service import Reading, read_main, read_service
from argo_harbor.sources.compose.values import Known, Variable, expand

_TOP = ("version", "name", "services", "volumes", "networks")
_REASONS = {
    "secrets": "has secrets: give them to a variable, as environment: NAME=${NAME}, and grant the name",
    "configs": "has configs, which are files of this machine: copy them into the image",
    "include": "includes other files: write the services into this one",
}
_LEFT = re.compile(r"services\.[^.]+\.environment(\..*)?|(.*\.)?x-.*")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")


def read_compose(
    data: bytes,
    config: TaskConfig,
    *,
    folder: str,
    paths: Collection[str],
    describe: Callable[[Build], ImageSource],
) -> tuple[Compose, Build | str | None]:
    """What the file asks for, and the image of `main`: a build, a name, or None for the task's own.

    `paths` are the task's files, `folder` that of the compose file; `describe` reads a build's context.
    Never fails: what is wrong is in the findings.
    """
    notes = Notes(f"{folder}/{COMPOSE}")
    try:
        document = read_yaml(data)
    except BrokenCompose as error:
        notes.refuse("", str(error), "correct the file")
        return Compose(findings=tuple(notes.findings)), None
    known = _known(config)
    filled = {key: _filled(value, known, notes, key) for key, value in document.items()}
    notes.only("", filled, _TOP, _REASONS)
    declared = notes.mapping("services", filled.get("services"))
    volumes = _volumes(filled.get("volumes"), notes)
    tables = {name: notes.mapping(f"services.{name}", table) for name, table in declared.items()}
    _one_network(filled.get("networks"), tables, notes)
    main = tables.pop(MAIN_SERVICE, {})
    _check_names(tables, notes)
    reading = Reading(notes, folder, frozenset(paths), known, volumes, describe)
    if len(tables) > MAX_SERVICES:
        return Compose(findings=tuple(notes.findings)), None
    services = {name: read_service(name, table, reading) for name, table in tables.items()}
    of_main = read_main(main, config, reading)
    ordered = start_order({**tables, MAIN_SERVICE: main}, services, notes)
    _check_ports(ordered, notes)
    compose = Compose(
        services=tuple(ordered),
        environment=of_main.environment,
        mounts=of_main.mounts,
        working_dir=of_main.working_dir,
        findings=tuple(notes.findings),
    )
    return compose, of_main.image


def _known(config: TaskConfig) -> Known:
    """What Harbor fills in, over the task's own variables, which it hands to compose as well."""
    environment = config.environment
    known: dict[str, str | Variable] = {}
    for name, value in environment.env.items():
        asked = requested_variable(value)
        known[name] = value if asked is None else Variable(asked.name, asked.default)
    for kind, path in (("VERIFIER_LOGS", "verifier"), ("AGENT_LOGS", "agent"), ("ARTIFACTS", "artifacts")):
        known[f"HOST_{kind}_PATH"] = LOGS
        known[f"ENV_{kind}_PATH"] = f"/logs/{path}"
    known["CONTEXT_DIR"] = "."
    known["MAIN_IMAGE_NAME"] = MAIN_SERVICE
    if environment.docker_image:
        known["PREBUILT_IMAGE_NAME"] = environment.docker_image
    if environment.cpus:
        known["CPUS"] = f"{environment.cpus:g}"
    if environment.memory_mb:
        known["MEMORY"] = f"{environment.memory_mb}M"
    return known


def _filled(value: Any, known: Known, notes: Notes, path: str) -> Any:
    """The data with variables filled in, where they are this file's to give: a run may grant those of an
    environment, and what an extension holds counts only where an alias puts it."""
    if isinstance(value, dict):
        return {key: _filled(child, known, notes, f"{path}.{key}") for key, child in value.items()}
    if _LEFT.fullmatch(path):
        return value
    if isinstance(value, list):
        return [_filled(child, known, notes, f"{path}[{number}]") for number, child in enumerate(value)]
    if not isinstance(value, str) or "$" not in value:
        return value
    expanded = notes.tried(path, lambda text: expand(text, known), value, None)
    if expanded is None:
        return value
    for variable in expanded.left:
        if variable.default is None:
            notes.refuse(
                path,
                f"reads {variable.name}, which has no value here",
                "write the value, or a default as ${NAME:-default}; a run grants only whole values of "
                "environment entries",
            )
    return expanded.text


def _volumes(value: object, notes: Notes) -> frozenset[str]:
    """Names of the volumes that the file declares."""
    declared = notes.mapping("volumes", value)
    for name, settings in declared.items():
        where = f"volumes.{name}"
        table = notes.mapping(where, settings)
        reason = (
            "asks for storage from outside of the pod; a volume here is a folder that ends with the trial"
        )
        for key in table:
            if key not in ("name", "labels") and (key, table[key]) not in (
                ("driver", "local"),
                ("external", False),
            ):
                notes.refuse(f"{where}.{key}", reason)
    return frozenset(declared)


def _one_network(value: object, tables: Mapping[str, Mapping[str, Any]], notes: Notes) -> None:
    """All containers of a pod share one network, so services must not be kept apart."""
    declared = notes.mapping("networks", value)
    for name, settings in declared.items():
        table = notes.mapping(f"networks.{name}", settings)
        for key in table:
            if (key, table[key]) not in (("driver", "bridge"), ("internal", False), ("external", False)):
                notes.refuse(f"networks.{name}.{key}", "the network of a pod is the platform's to set up")
    members = {name: _networks(name, table.get("networks"), notes) for name, table in tables.items()}
    used = set(members.values()) | ({frozenset({"default"})} if MAIN_SERVICE not in members else set())
    if len(used) > 1 or any(len(each) > 1 for each in used):
        notes.refuse(
            "networks",
            "keeps services apart, and all containers of a pod share one network",
            "put every service, main too, into the same network, or leave networks out",
        )


def _networks(name: str, value: object, notes: Notes) -> frozenset[str]:
    where = f"services.{name}.networks"
    if isinstance(value, list):
        return frozenset(map(str, value)) or frozenset({"default"})
    joined = notes.mapping(where, value, "a list or a mapping")
    for network, settings in joined.items():
        if settings:
            notes.refuse(
                f"{where}.{network}",
                "changes how it is reached, and in a pod every service has its name and nothing else",
                "use the service's own name",
            )
    return frozenset(joined) or frozenset({"default"})


def _check_names(tables: Mapping[str, object], notes: Notes) -> None:
    for name in tables:
        if not _NAME.fullmatch(name):
            notes.refuse(
                f"services.{name}",
                f"{name!r} cannot be the name of a container",
                "use at most 40 lower-case letters, digits and - in a name",
            )
    if len(tables) > MAX_SERVICES:
        notes.refuse("services", f"{len(tables)} services beside {MAIN_SERVICE}, at most {MAX_SERVICES}")


def _check_ports(services: list[Service], notes: Notes) -> None:
    taken: dict[int, str] = {}
    for service, port in _ports(services):
        where = f"services.{service}.ports"
        if port in RESERVED_PORTS:
            notes.refuse(where, f"listens on {port}, which is {RESERVED_PORTS[port]}'s", _OTHER_PORT)
        elif taken.setdefault(port, service) != service:
            notes.refuse(
                where,
                f"listens on {port} like {taken[port]}, and all containers of a pod share one address",
                _OTHER_PORT,
            )


def _ports(services: list[Service]) -> Iterator[tuple[str, int]]:
    for service in services:
        for port in service.ports:
            yield service.name, port


_OTHER_PORT = "let the service listen on another port"
