"""The environment in which Harbor resolves a task's `${NAME}`: PATH, HOME, LANG and what the run grants.

Harbor reads variables from its process's environment. Its child therefore replaces the environment that it
was started with by exactly this one before Harbor is imported, so nothing of the caller's shell can be
asked for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from argo_harbor.model.plan import Grants

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LANG = "C.UTF-8"
HARBOR_SWITCHES = {"HARBOR_TELEMETRY": "0", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
"""No word home, and no price list fetched from the Internet at import."""
SHORTEST_SECRET = 6
"""Characters. A shorter value would turn up in unrelated text, so it is not blotted out there."""


class GrantedValues(dict[str, str]):
    """Granted variables with their values; never printed."""

    def __repr__(self) -> str:
        return f"GrantedValues({sorted(self)})"


def secrets(grants: Grants, values: Mapping[str, str], *more: str) -> tuple[str, ...]:
    """The values that must not appear in what a trial leaves behind, longest first; `more` are such too."""
    names = {grant.name for grant in (*grants.target, *grants.verifier) if grant.kind != "lit"}
    candidates = (*(values.get(name, "") for name in names), *more)
    found = {value for value in candidates if len(value) >= SHORTEST_SECRET}
    return tuple(sorted(found, key=len, reverse=True))


def harbor_environment(home: str, *granted: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of the child: what is granted wins over PATH, HOME and LANG."""
    environment = {"PATH": SYSTEM_PATH, "HOME": home, "LANG": LANG, **HARBOR_SWITCHES}
    for values in granted:
        environment |= values
    return environment


def replace_environment(environment: Mapping[str, str]) -> None:
    """Make this process's environment exactly `environment`."""
    os.environ.clear()
    os.environ.update(environment)
