"""Which variables a run grants, and which of them a task reads as `${NAME}`.

Harbor resolves every `${NAME}` of a task from its own process environment, so the runner gives that process
the granted names and nothing else of the machine's but PATH, HOME and LANG. Only names are handled here;
values are read where the run is submitted or where it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from argo_harbor.model.plan import EnvNeeds, Grant, Grants
from argo_harbor.model.spec import EnvValue, RunSpec
from argo_harbor.model.task import EnvironmentConfig
from argo_harbor.model.task_env import Variable, requested_in_header, requested_variable
from argo_harbor.model.taskset import Task
from argo_harbor.planning.report import Report

RUNNER_VARIABLES = frozenset({"PATH", "HOME", "LANG"})
"""Set for the runner's sake: a task that reads one of them would get the machine's, not its own."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/[A-Za-z0-9._-]{1,253}")
_EMPTY = EnvNeeds()


def plan_grants(spec: RunSpec, report: Report) -> Grants:
    """The variables of both maps. Reports `invalid_spec` and, for a name with two values, `env_conflict`."""
    target, verifier = spec.spec.target, spec.spec.verifier
    grants = Grants(
        target=_grants("spec.target", target.env, target.env_secrets, report),
        verifier=_grants("spec.verifier", verifier.env, verifier.env_secrets, report),
    )
    of_target = {grant.name: grant for grant in grants.target}
    for grant in grants.verifier:
        if of_target.get(grant.name, grant) != grant:
            _conflict(grant.name, "spec.verifier.env", report)
    return grants


def _grants(
    key: str, env: Mapping[str, str], secrets: Mapping[str, str], report: Report
) -> tuple[Grant, ...]:
    found: dict[str, Grant] = {}
    for name, text in (*env.items(), *((name, f"secret:{text}") for name, text in secrets.items())):
        table = f"{key}.env" if name in env and env[name] == text else f"{key}.env_secrets"
        kind, value = EnvValue.parse(text)
        if kind == "secret" and "/" not in value:
            value = f"{value}/{name}"
        if kind in ("host", "runtime") and not _VARIABLE.fullmatch(value):
            report.refuse(
                "invalid_spec",
                f"{text!r} names no variable",
                key=f"{table}.{name}",
                hint=f"write {kind}:NAME",
            )
        if kind == "secret" and not _SECRET.fullmatch(value):
            report.refuse(
                "invalid_spec",
                f"{text!r} names no key of a Secret",
                key=f"{table}.{name}",
                hint="write NAME/KEY, the Secret's name in lower case",
            )
        grant = Grant(name=name, kind=kind, value=value)
        if found.setdefault(name, grant) != grant:
            _conflict(name, table, report)
    return tuple(found[name] for name in sorted(found))


def _conflict(name: str, table: str, report: Report) -> None:
    report.refuse(
        "env_conflict",
        f"{name} has two values",
        key=f"{table}.{name}",
        hint="Harbor reads all maps from one environment: give the name one value",
    )


class Granted(NamedTuple):
    """Names that a task may read, per destination."""

    target: frozenset[str]
    verifier: frozenset[str]
    runtime: frozenset[str] = frozenset()
    """Those of the target that only the runner's own container has."""

    @classmethod
    def of(cls, grants: Grants) -> Granted:
        return cls(
            frozenset(grant.name for grant in grants.target),
            frozenset(grant.name for grant in grants.verifier),
            frozenset(grant.name for grant in grants.target if grant.kind == "runtime"),
        )


class _Asked(NamedTuple):
    variable: Variable
    key: str


def plan_needs(task: Task, granted: Granted, report: Report, *, oracle: bool) -> EnvNeeds:
    """The granted names that the task reads. Reports `env_not_granted`.

    [solution].env counts only for the oracle, which alone reads it. The environment of a separate verifier
    may read what either map grants.
    """
    config = task.config
    environment = _granted(
        _in_environment(config.environment, "environment"), granted.target, "target", report
    )
    solution: tuple[str, ...] = ()
    if oracle and config.solution.env:
        solution = _granted(_in_map(config.solution.env, "solution.env"), granted.target, "target", report)
    verifier = _granted(_in_verifier(task), granted.verifier, "verifier", report)
    own = _granted(
        _in_own_environments(task), granted.target | granted.verifier, "target or verifier", report
    )
    if own:
        environment = _merged(environment, (name for name in own if name in granted.target))
        verifier = _merged(verifier, (name for name in own if name not in granted.target))
    if not (environment or solution or verifier):
        return _EMPTY
    return EnvNeeds(environment=environment, solution=solution, verifier=verifier)


def _merged(names: tuple[str, ...], more: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({*names, *more}))


def _in_map(env: Mapping[str, str], key: str) -> list[_Asked]:
    return [
        _Asked(variable, f"{key}.{name}")
        for name, value in env.items()
        if (variable := requested_variable(value)) is not None
    ]


def _in_environment(environment: EnvironmentConfig, key: str) -> list[_Asked]:
    asked = _in_map(environment.env, f"{key}.env")
    for number, server in enumerate(environment.mcp_servers):
        for name, value in server.headers.items():
            where = f"{key}.mcp_servers[{number}].headers.{name}"
            asked += [_Asked(variable, where) for variable in requested_in_header(value)]
    return asked


def _in_verifier(task: Task) -> list[_Asked]:
    """A step's value replaces the task's of the same name, which then nobody reads."""
    config = task.config
    if not task.steps:
        return _in_map(config.verifier.env, "verifier.env")
    asked = []
    for number, step in enumerate(task.steps):
        own = step.verifier.env
        common = {name: value for name, value in config.verifier.env.items() if name not in own}
        asked += _in_map(common, "verifier.env") + _in_map(own, f"steps[{number}].verifier.env")
    return asked


def _in_own_environments(task: Task) -> list[_Asked]:
    config = task.config
    tables = [(config.verifier.environment, "verifier.environment")]
    tables += [
        (step.verifier.environment, f"steps[{number}].verifier.environment")
        for number, step in enumerate(task.steps)
    ]
    return [asked for table, key in tables if table is not None for asked in _in_map(table.env, f"{key}.env")]


def _granted(
    asked: Iterable[_Asked], names: frozenset[str], destination: str, report: Report
) -> tuple[str, ...]:
    found = set()
    for variable, key in asked:
        name = variable.name
        if name in names:
            found.add(name)
        elif name in RUNNER_VARIABLES:
            report.refuse(
                "env_not_granted",
                f"reads {name}, which is the runner's own",
                key=key,
                hint=f"write the value itself, or grant {name} in spec.{_map_of(destination)}.env",
            )
        elif variable.default is None and not _VARIABLE.fullmatch(name):
            # Harbor asks its environment for such a name all the same, and no request can grant it.
            report.refuse(
                "env_not_granted",
                f"reads {name!r}, which is no name of a variable",
                key=key,
                hint="write the value itself",
            )
        elif variable.default is None:
            report.refuse(
                "env_not_granted",
                f"reads {name}, which the run does not grant",
                key=key,
                hint=how_to_grant(name, _map_of(destination)),
            )
    return tuple(sorted(found))


def how_to_grant(name: str, of: str) -> str:
    """What to write into a request file for a variable that a task reads. `of` is `target` or `verifier`."""
    return (
        f"add to spec.{of}.env of the request file {name}: host:{name} (your shell's variable at submit) "
        "or lit:VALUE (a text)"
    )


def _map_of(destination: str) -> str:
    return "verifier" if "verifier" in destination else "target"
