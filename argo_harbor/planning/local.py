"""What the local engine cannot do with a plan: found when a run is submitted to it, never stored in a plan.

It runs the agents that call no model, as root in a sandbox, with the network either cut off or not fenced at
all, with variables of this machine only, and alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from argo_harbor.errors import Finding
from argo_harbor.model.plan import Grants, PhaseRules, RunPlan, TaskPlan

LOCAL_AGENTS = ("oracle", "nop")
ROOT = frozenset({"root", "0"})


def local_findings(plan: RunPlan, *, allow_unfenced_network: bool = False) -> list[Finding]:
    """Everything that keeps the plan from running on this machine; empty when it can.

    `allow_unfenced_network` lets tasks that are public in every phase share the host's network.
    """
    findings = [*_agent(plan), *_variables(plan.head.grants)]
    for part in plan.parts:
        findings += _network(part, allow_unfenced_network)
        findings += _users(part)
        findings += _services(part)
    return findings


def local_network(part: TaskPlan) -> PhaseRules | None:
    """The one rule that holds in every phase of a task, None where phases differ or name hosts."""
    phases = {part.rules.setup.mode}
    for rules in [step.rules for step in part.steps] or [part.rules]:
        phases |= {rules.agent.mode, rules.verifier.mode}
    return part.rules.agent if phases in ({"none"}, {"public"}) else None


def _agent(plan: RunPlan) -> Iterator[Finding]:
    agent = plan.head.agent
    if agent.import_path or agent.name not in LOCAL_AGENTS:
        yield Finding(
            "local_agent_unsupported",
            f"the local engine does not run the agent {agent.name}",
            f"run {' or '.join(LOCAL_AGENTS)} here, or compile the run for a cluster",
            key="spec.target.source.name",
        )


def _variables(grants: Grants) -> Iterator[Finding]:
    for table, granted in (("spec.target", grants.target), ("spec.verifier", grants.verifier)):
        for grant in granted:
            if grant.kind in ("secret", "runtime"):
                yield Finding(
                    "local_env_unsupported",
                    f"{grant.kind}:{grant.value} exists only in a cluster",
                    "use host:NAME to read a variable of this shell, or lit:VALUE",
                    key=f"{table}.env.{grant.name}",
                )


def _network(part: TaskPlan, allow_unfenced: bool) -> Iterator[Finding]:
    rule = local_network(part)
    if rule is None:
        yield _unenforceable(
            part,
            "needs a network with some hosts or in some phases only, which cannot be enforced here",
            "choose the profile closed, or compile the task for a cluster",
        )
    elif rule.mode == "public" and not allow_unfenced:
        yield _unenforceable(
            part,
            "is public in every phase, and here nothing would fence it",
            "choose the profile closed, or give --allow-unfenced-network to share this machine's network",
        )


def _unenforceable(part: TaskPlan, message: str, hint: str) -> Finding:
    return Finding("local_network_unenforceable", message, hint, part.name, f"{part.folder}/task.toml")


def _users(part: TaskPlan) -> Iterator[Finding]:
    for user in part.users:
        if user not in ROOT:
            yield Finding(
                "local_user_unsupported",
                f"names the user {user}, and sandboxes of the local engine run as root",
                "leave the task out with --tasks, or compile it for a cluster",
                part.name,
                f"{part.folder}/task.toml",
            )


def _services(part: TaskPlan) -> Iterator[Finding]:
    if part.services or part.main_mounts:
        yield Finding(
            "invalid_compose_file",
            "needs other containers beside its sandbox, and here it gets none",
            "submit it to a cluster, or leave the task out with --tasks or --skip-refused",
            part.name,
            f"{part.folder}/environment/docker-compose.yaml",
            "services",
        )
