"""What a plan may hold that a workflow must not: refused before anything is emitted, all of it at once.

Strings that reach the object are either made by the compiler or checked by the plan's models; the few that
the models leave free are checked here. `host:` grants are refused because a workflow has nowhere to take
them from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from ipaddress import ip_address, ip_network

from argo_harbor.errors import Finding, Refused, UsageError
from argo_harbor.model.build_plan import BuildPlan
from argo_harbor.model.plan import PlanHead, RunPlan
from argo_harbor.model.platform import Platform
from argo_harbor.planning.argo import argo_findings
from argo_harbor.workflow import destinations
from argo_harbor.workflow.text import ENV_NAME, LABEL_KEY, LABEL_VALUE, PLAIN, SECRET_REFERENCE

Check = tuple[str, Callable[[], object]]
"""A key of the platform file, and what raises ValueError when its value is none."""


def check_plan(plan: RunPlan, *, host_variables: bool = False) -> None:
    """Raises Refused with every finding, UsageError for a plan without a running task.

    `host_variables`: the submitter has read them, so they are no finding.
    """
    head = plan.head
    if not plan.parts:
        raise UsageError("no_tasks_selected", "no task of the plan runs", "select other tasks")
    findings = [
        *argo_findings(plan, host_variables=host_variables),
        *_grants(head),
        *_profile(head),
        *_model_place(head),
        *_platform(head.platform, head.denied),
    ]
    if findings:
        raise Refused.of(findings, "setting")


def check_builds(plan: BuildPlan) -> None:
    """Raises Refused with every finding about the platform."""
    if findings := list(_platform(plan.platform, plan.denied)):
        raise Refused.of(findings, "setting")


def _grants(head: PlanHead) -> Iterator[Finding]:
    for key, grants in (("target", head.grants.target), ("verifier", head.grants.verifier)):
        for grant in grants:
            where = f"spec.{key}.env.{grant.name}"
            if not ENV_NAME.fullmatch(grant.name):
                yield Finding("invalid_spec", f"{grant.name!r} is no name of a variable", key=where)
            if grant.kind == "secret" and not SECRET_REFERENCE.fullmatch(grant.value):
                yield Finding(
                    "invalid_spec",
                    f"{grant.value!r} names no key of a Secret",
                    "write secret:NAME/KEY",
                    key=where,
                )
    model = head.agent.model
    if model and model.secret and not SECRET_REFERENCE.fullmatch(model.secret):
        yield Finding("invalid_platform", f"{model.secret!r} names no key of a Secret", key="models")


def _profile(head: PlanHead) -> Iterator[Finding]:
    profile = head.profile
    texts = [
        ("runtime_class", profile.runtime_class, PLAIN),
        ("gpu", profile.gpu, LABEL_KEY),
        *(("node_selector", key, LABEL_KEY) for key in profile.node_selector),
        *(("node_selector", value, LABEL_VALUE) for value in profile.node_selector.values()),
        *(("tolerations", each.key, LABEL_KEY) for each in profile.tolerations),
        *(("tolerations", each.value, LABEL_VALUE) for each in profile.tolerations),
    ]
    for key, text, pattern in texts:
        if text and not pattern.fullmatch(text):
            yield Finding(
                "invalid_profile",
                f"{text!r} cannot stand in a pod",
                "Kubernetes takes letters, digits and . _ - / here",
                file=profile.name,
                key=key,
            )


def _model_place(head: PlanHead) -> Iterator[Finding]:
    yield from _broken([("models", lambda: destinations.model(head))])


def _platform(platform: Platform, denied: Iterable[str]) -> Iterator[Finding]:
    network = platform.network
    checks: list[Check] = [
        ("store.endpoint", lambda: destinations.store(platform)),
        ("registry", lambda: destinations.registry(platform)),
        ("base_image_mirror", lambda: destinations.build_sources(platform)),
        ("network.api_server", lambda: destinations.api_servers(network)),
        ("network.resolvers", lambda: _each(ip_address, network.resolvers)),
        ("network.pod_cidrs", lambda: _each(_range, network.pod_cidrs)),
        ("network.service_cidrs", lambda: _each(_range, network.service_cidrs)),
        ("network.node_cidrs", lambda: _each(_range, network.node_cidrs)),
        ("deny", lambda: _each(_range, denied)),
    ]
    yield from _broken(checks)


def _broken(checks: Iterable[Check]) -> Iterator[Finding]:
    for key, check in checks:
        try:
            check()
        except ValueError as error:
            yield Finding("invalid_platform", str(error), "name hosts and addresses as they are", key=key)


def _each(check: Callable[[str], object], texts: Iterable[str]) -> None:
    for text in texts:
        check(text)


def _range(text: str) -> object:
    return ip_network(text, strict=False)
