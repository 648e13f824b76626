"""The healthcheck of a service, as a node can carry it out."""

from __future__ import annotations

import math

from argo_harbor.model.services import HealthProbe
from argo_harbor.sources.compose.notes import Notes
from argo_harbor.sources.compose.values import number, scalar, seconds

_DEFAULT_SECONDS = {"interval": 30.0, "timeout": 30.0, "start_period": 0.0}
_LONGEST_PERIOD = 5
"""Seconds between two looks: a service that takes long to start is still noticed soon after."""
_LEAST_PATIENCE = 60.0
_SLOWER = 2
"""Times as long as the file says may a service take, and at least a minute: a node that is busy with other
trials must not look like a broken service."""


def read_probe(key: str, value: object, notes: Notes) -> HealthProbe | None:
    """None where nothing is to be checked."""
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
    parts = notes.words(f"{key}.test", test)
    if parts[:1] == ("NONE",):
        return ()
    if parts[:1] == ("CMD-SHELL",) and len(parts) == 2:
        return ("/bin/sh", "-c", parts[1])
    if parts[:1] == ("CMD",) and len(parts) > 1:
        return parts[1:]
    notes.refuse(f"{key}.test", "must be CMD with a command, CMD-SHELL with one text, or NONE", "correct it")
    return ()
