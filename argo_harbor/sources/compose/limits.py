"""How much of a machine a service may use, in each of the ways in which compose has it written."""

from __future__ import annotations

from typing import Any

from argo_harbor.sources.compose.keys import PLATFORMS, REASONS
from argo_harbor.sources.compose.notes import Notes
from argo_harbor.sources.compose.values import megabytes, number


def read_resources(where: str, table: dict[str, Any], notes: Notes) -> tuple[float | None, int | None]:
    """Cpus and MiB that the service may use; None where it does not say."""
    values: dict[str, object] = {"cpus": table.get("cpus"), "memory": table.get("mem_limit")}
    places = {"cpus": f"{where}.cpus", "memory": f"{where}.mem_limit"}
    for name, value in _limits(where, table, notes).items():
        values[name], places[name] = value, f"{where}.deploy.resources.limits.{name}"
    cpus, memory = values["cpus"], values["memory"]
    return (
        None if cpus is None else notes.tried(places["cpus"], number, cpus, None),
        None if memory is None else notes.tried(places["memory"], megabytes, memory, None),
    )


def _limits(where: str, table: dict[str, Any], notes: Notes) -> dict[str, Any]:
    deploy = notes.mapping(f"{where}.deploy", table.get("deploy"))
    allowed = ("resources", "restart_policy", "replicas", "labels", "update_config", "mode")
    notes.only(f"{where}.deploy", deploy, allowed, {})
    if deploy.get("replicas", 1) != 1 or deploy.get("mode", "replicated") != "replicated":
        notes.refuse(f"{where}.deploy.replicas", REASONS["scale"])
    resources = notes.mapping(f"{where}.deploy.resources", deploy.get("resources"))
    notes.only(f"{where}.deploy.resources", resources, ("limits", "reservations"), {})
    for kind in ("limits", "reservations"):
        table_of = notes.mapping(f"{where}.deploy.resources.{kind}", resources.get(kind))
        reasons = {"devices": REASONS["gpus"], "pids": PLATFORMS}
        notes.only(f"{where}.deploy.resources.{kind}", table_of, ("cpus", "memory"), reasons)
    chosen = resources.get("limits") or resources.get("reservations")
    return chosen if isinstance(chosen, dict) else {}
