"""What cannot be compiled to an Argo Workflow: found when compiling, never stored in a plan."""

from __future__ import annotations

from collections.abc import Iterator

from argo_harbor.errors import Finding
from argo_harbor.model.plan import RunPlan
from argo_harbor.model.states import VerifierMode


def argo_findings(plan: RunPlan, *, host_variables: bool = False) -> list[Finding]:
    """Everything that keeps the plan from being a workflow; empty when it can be.

    `host_variables`: who submits has read them, and brings their values in a Secret.
    """
    return [*(() if host_variables else _host_variables(plan)), *_steps_with_separate_verifiers(plan)]


def _host_variables(plan: RunPlan) -> Iterator[Finding]:
    grants = plan.head.grants
    for table, granted in (("spec.target", grants.target), ("spec.verifier", grants.verifier)):
        for grant in granted:
            if grant.kind == "host":
                yield Finding(
                    "invalid_spec",
                    f"host:{grant.value} is read where a run is submitted, and compiling reads no variable",
                    f"put the value into a Secret and write secret:NAME/{grant.name}",
                    key=f"{table}.env.{grant.name}",
                )


def _steps_with_separate_verifiers(plan: RunPlan) -> Iterator[Finding]:
    for part in plan.parts:
        if part.steps and part.verifier_mode is VerifierMode.SEPARATE:
            yield Finding(
                "separate_verifier_steps_unsupported",
                "has several steps and a separate verifier, which needs a second sandbox beside the first",
                "let the steps be graded in the agent's sandbox, or leave the task out with --tasks",
                part.name,
                f"{part.folder}/task.toml",
            )
