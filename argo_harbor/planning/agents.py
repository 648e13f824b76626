"""Which agent runs, with which model: looked up in the table of agents and the platform's models."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from argo_harbor.model.agents import AgentKind, agent_hint, find_agent
from argo_harbor.model.base import canonical_json
from argo_harbor.model.plan import AgentPlan, ModelPlan
from argo_harbor.model.platform import Platform
from argo_harbor.model.spec import RunSpec
from argo_harbor.planning.network import model_hosts
from argo_harbor.planning.report import Report

CUSTOM_SETUP_SECONDS = 360.0
"""Harbor's default setup timeout, for an agent that is no built-in one."""

_CREDENTIAL_NAME = re.compile(r"KEY|SECRET|TOKEN(?!S)|PASSWORD|CREDENTIAL|AUTH", re.IGNORECASE)
_CREDENTIAL_VALUE = re.compile(
    r"(sk|pk|rk|ghp|gho|ghs|github_pat|glpat|hf|nvapi|xox[abp])[-_][A-Za-z0-9_-]{16,}"
    r"|AKIA[A-Z0-9]{16}|-----BEGIN "
)
_PLAIN = re.compile(r"[A-Za-z0-9._/:@-]+")
_SOURCE = "spec.target.source"


class ChosenAgent(NamedTuple):
    """The agent as planned, and what planning of tasks must know of it."""

    plan: AgentPlan
    installs: bool
    """True when setup needs the profile's setup hosts."""
    setup_seconds: float


def plan_agent(spec: RunSpec, platform: Platform, report: Report) -> ChosenAgent:
    """Look up the agent and its model.

    Reports `invalid_spec` for an unknown agent or model and for credentials in `agent_kwargs`,
    `model_required` for a model-calling agent without a model.
    """
    target = spec.spec.target
    source = target.source
    kind = None if source.import_path else find_agent(source.name)
    if kind is None and not source.import_path:
        report.refuse(
            "invalid_spec",
            f"there is no agent {source.name!r}",
            key=f"{_SOURCE}.name",
            hint=agent_hint(source.name),
        )
    if source.import_path and not _PLAIN.fullmatch(source.name):
        report.refuse(
            "invalid_spec",
            f"{source.name!r} cannot name an agent",
            key=f"{_SOURCE}.name",
            hint='use letters, digits and ". _ / : @ -" only',
        )
    model = _model(source.model.ref, platform, report) if source.model else None
    # Of an agent from the runner's image nothing is known; without a model it gets no model's host or key.
    calls_model = kind.calls_model if kind else source.model is not None
    if calls_model and source.model is None:
        report.refuse(
            "model_required",
            f"{source.name} calls a model, and none is named",
            key=f"{_SOURCE}.model.ref",
            hint=f"use --spec-file with {_SOURCE}.model.ref; {_models_hint(platform)}",
        )
    for path in _credentials(target.agent_kwargs, "spec.target.agent_kwargs"):
        report.refuse(
            "invalid_spec",
            "looks like a credential, and agent_kwargs stand in the plan for all to read",
            key=path,
            hint="give it as a variable: spec.target.env_secrets, or spec.target.env with host:NAME",
        )
    try:
        canonical_json(target.agent_kwargs)
    except (TypeError, ValueError) as error:
        report.refuse(
            "invalid_spec",
            f"cannot stand in a plan: {error}",
            key="spec.target.agent_kwargs",
            hint="use texts, finite numbers, true and false, lists and tables",
        )
    agent = AgentPlan(
        name=source.name,
        import_path=source.import_path,
        calls_model=calls_model,
        kwargs=target.agent_kwargs,
        model=model,
    )
    return ChosenAgent(agent, kind.installs if kind else True, _setup_seconds(spec, kind))


def _setup_seconds(spec: RunSpec, kind: AgentKind | None) -> float:
    default = kind.setup_timeout_seconds if kind else CUSTOM_SETUP_SECONDS
    return float(spec.spec.target.setup_timeout_seconds or default)


def _model(ref: str, platform: Platform, report: Report) -> ModelPlan | None:
    served = platform.models.get(ref)
    if served is None:
        near = difflib.get_close_matches(ref, platform.models, n=1)
        report.refuse(
            "invalid_spec",
            f"the platform has no model {ref!r}",
            key=f"{_SOURCE}.model.ref",
            hint=(f"did you mean {near[0]}? " if near else "") + _models_hint(platform),
        )
        return None
    try:
        hosts = model_hosts(served)
    except ValueError as error:
        report.refuse(
            "invalid_platform",
            str(error),
            key=f"models.{ref}.hosts",
            hint="name the model's hosts in the platform file",
        )
        return None
    return ModelPlan(
        ref=ref,
        base_url=served.base_url,
        model=served.model,
        provider=served.provider,
        secret=served.secret,
        hosts=hosts,
        closed_book=served.closed_book,
    )


def _models_hint(platform: Platform) -> str:
    if not platform.models:
        return "add [models.NAME] to the platform file"
    return f"models: {', '.join(sorted(platform.models))}"


def _credentials(value: Any, path: str, named: bool = False) -> Iterator[str]:
    """Keys whose text would be a credential, by the key's name or the look of the text."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _credentials(inner, f"{path}.{key}", bool(_CREDENTIAL_NAME.search(key)))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _credentials(inner, f"{path}[{number}]", named)
    elif isinstance(value, str) and value and (named or _CREDENTIAL_VALUE.search(value)):
        yield path
