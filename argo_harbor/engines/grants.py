"""Reads the variables that a run grants from the shell that submits it.

On this machine the values go to each runner through its standard input and are written nowhere; for a cluster
they go into a Secret of the run's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from argo_harbor.errors import Finding, Refused
from argo_harbor.model.plan import Grant, Grants


@dataclass(frozen=True, slots=True)
class Granted:
    """Granted variables with their values; never shown."""

    target: Mapping[str, str] = field(repr=False)
    verifier: Mapping[str, str] = field(repr=False)

    def as_input(self) -> bytes:
        """What a runner reads from its standard input."""
        return json.dumps({"target": dict(self.target), "verifier": dict(self.verifier)}).encode()


def resolve(grants: Grants, environ: Mapping[str, str]) -> Granted:
    """Values of the `target` and the `verifier` map, `host:` variables read from `environ`.

    Raises: Refused `local_env_unsupported` for what only a cluster can read, `env_not_granted` for a `host:`
    variable that is not set.
    """
    findings: list[Finding] = []
    target = _values(grants.target, "target", environ, findings)
    verifier = _values(grants.verifier, "verifier", environ, findings)
    if findings:
        raise Refused.of(findings, "variable")
    return Granted(target, verifier)


def host_values(grants: Grants, environ: Mapping[str, str]) -> dict[str, str]:
    """The `host:` variables of both maps by the names that they are granted under.

    Raises: Refused `env_not_granted` for each that is not set.
    """
    findings: list[Finding] = []
    found: dict[str, str] = {}
    for where, granted in (("target", grants.target), ("verifier", grants.verifier)):
        host = [grant for grant in granted if grant.kind == "host"]
        found |= _values(host, where, environ, findings)
    if findings:
        raise Refused.of(findings, "variable")
    return found


def _values(
    grants: Iterable[Grant], where: str, environ: Mapping[str, str], findings: list[Finding]
) -> dict[str, str]:
    values: dict[str, str] = {}
    for grant in grants:
        if grant.kind == "lit":
            values[grant.name] = grant.value
        elif grant.kind != "host":
            findings.append(
                Finding(
                    "local_env_unsupported",
                    f"{grant.kind}:{grant.value} can only be read on a cluster",
                    "give host: or lit: on the local engine",
                    key=f"spec.{where}.env.{grant.name}",
                )
            )
        elif grant.value in environ:
            values[grant.name] = environ[grant.value]
        else:
            findings.append(
                Finding(
                    "env_not_granted",
                    f"the variable {grant.value} is not set in this shell",
                    f"export {grant.value}=… or change host:{grant.value}",
                    key=f"spec.{where}.env.{grant.name}",
                )
            )
    return values
