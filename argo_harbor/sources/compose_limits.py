"""How much of a machine a service may use, in each of the ways in which compose has it written."""

from __future__ import annotations

from typing import Any

from argo_harbor.sources.compose_keys import PLATFORMS, REASONS
from argo_harbor.sources.compose_notes import Notes
from argo_harbor.sources.compose_values import megabytes, number


def read_resources(where: str, table: dict[str, Any], notes: Notes) -> tuple[float | None, int | None]:
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
        notes.refuse(f"{where}.deploy.replicas", REASONS["scale"])
    resources = notes.mapping(f"{where}.deploy.resources", deploy.get("resources"))
    notes.only(f"{where}.deploy.resources", resources, ("limits", "reservations"), {})
    for kind in ("limits", "reservations"):
        table_of = notes.mapping(f"{where}.deploy.resources.{kind}", resources.get(kind))
        reasons = {"devices": REASONS["gpus"], "pids": PLATFORMS}
        notes.only(f"{where}.deploy.resources.{kind}", table_of, ("cpus", "memory"), reasons)
    chosen = resources.get("limits") or resources.get("reservations")
    return chosen if isinstance(chosen, dict) else {}
