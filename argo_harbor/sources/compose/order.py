"""In which order the containers of a compose file start, and what `depends_on` asks of each.

Containers of a pod start one after another, the next one when the one before has started, and is healthy if
it has a healthcheck; `main` is the last. So an order is all that a dependency needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from argo_harbor.model.services import Service
from argo_harbor.model.task import MAIN_SERVICE
from argo_harbor.sources.compose.notes import Notes

STARTED = "service_started"
HEALTHY = "service_healthy"
COMPLETED = "service_completed_successfully"


def start_order(
    tables: Mapping[str, Mapping[str, Any]], services: Mapping[str, Service], notes: Notes
) -> list[Service]:
    """The services, each behind those that it waits for, else in the order of the file.

    `tables` holds `main` too. One that is waited for until it ends is marked as `once`.
    """
    waits = {name: _conditions(name, table.get("depends_on"), notes) for name, table in tables.items()}
    asked: dict[str, set[str]] = {name: set() for name in services}
    for name, conditions in waits.items():
        for other, condition in conditions.items():
            where = f"services.{name}.depends_on.{other}"
            if other == MAIN_SERVICE:
                notes.refuse(where, f"waits for {MAIN_SERVICE}, which starts after every other service")
            elif other not in services:
                notes.refuse(where, "names no service of the file", "correct the name")
            else:
                asked[other].add(condition)
    for name, conditions_on in asked.items():
        if HEALTHY in conditions_on and services[name].probe is None:
            notes.refuse(
                f"services.{name}.healthcheck",
                "is missing, and another service waits until this one is healthy",
                "write the healthcheck here: the one of an image is not known to a cluster",
            )
        if {HEALTHY, COMPLETED} <= conditions_on:
            notes.refuse(f"services.{name}", "is to be healthy for one service and at its end for another")
    order: list[str] = []
    for name in services:
        _visit(name, waits, order, (), notes)
    ready = [services[name] for name in order if name in services]
    return [
        replace(service, once=True, probe=None) if COMPLETED in asked[service.name] else service
        for service in ready
    ]


def _visit(
    name: str, waits: Mapping[str, Mapping[str, str]], order: list[str], above: tuple[str, ...], notes: Notes
) -> None:
    if name in above:
        circle = " -> ".join((*above[above.index(name) :], name))
        notes.refuse("services", f"wait for one another: {circle}", "take one of the dependencies out")
        return
    if name in order or name == MAIN_SERVICE:
        return
    for other in waits.get(name, {}):
        _visit(other, waits, order, (*above, name), notes)
    if name not in order:
        order.append(name)


def _conditions(name: str, value: object, notes: Notes) -> dict[str, str]:
    where = f"services.{name}.depends_on"
    if isinstance(value, list):
        return {str(other): STARTED for other in value}
    found = {}
    for other, settings in notes.mapping(where, value, "a list or a mapping").items():
        table = notes.mapping(f"{where}.{other}", settings)
        notes.only(f"{where}.{other}", table, ("condition", "restart", "required"), {})
        condition = table.get("condition", STARTED)
        if condition not in (STARTED, HEALTHY, COMPLETED):
            notes.refuse(f"{where}.{other}.condition", f"{condition!r} is no condition", "correct the value")
        found[other] = str(condition)
    return found
