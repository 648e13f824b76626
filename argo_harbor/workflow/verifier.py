"""`trial-verified`: a trial whose verifier has a pod of its own, so that it can be graded again without the
agent."""

from __future__ import annotations

from typing import NamedTuple

from argo_harbor.model.plan import TaskPlan
from argo_harbor.workflow import names
from argo_harbor.workflow.objects import Parameter, Template
from argo_harbor.workflow.text import inputs
from argo_harbor.workflow.trial import PodShape, agent_shape, verify_shape

VERIFIER_PREFIX = "verifier-"
"""Before the parameters that shape the verifier's pod, where a template takes shapes as parameters."""


class VerifiedShape(NamedTuple):
    """The two pods of a trial with a separate verifier."""

    agent: PodShape
    verify: PodShape

    @property
    def template(self) -> str:
        """Name of the template for exactly these two shapes."""
        digests = "-".join(shape.template.rpartition("-")[2] for shape in self)
        return f"{names.TRIAL_VERIFIED}-{digests}"


def verified_shape(task: TaskPlan) -> VerifiedShape:
    return VerifiedShape(agent_shape(task), verify_shape(task))


def verified_template(
    name: str, templates: tuple[str, str], shaping: tuple[list[str], list[str]] = ([], [])
) -> Template:
    """The DAG agent, then verify, over two trial templates.

    `shaping` names the parameters that each of them takes besides task, attempt and image.
    """
    agent_extra, verify_extra = shaping
    taken: list[Parameter] = [{"name": each} for each in agent_extra]
    taken += [{"name": f"{VERIFIER_PREFIX}{each}"} for each in verify_extra]
    return {
        "name": name,
        "inputs": {
            "parameters": [
                {"name": "index"},
                {"name": "image"},
                {"name": "verifier-image"},
                {"name": "attempt", "value": "0"},
                *taken,
            ]
        },
        "dag": {
            "failFast": False,
            "tasks": [
                {
                    "name": "agent",
                    "template": templates[0],
                    "arguments": {"parameters": _passed("image", agent_extra, "")},
                },
                {
                    "name": "verify",
                    "template": templates[1],
                    "depends": "agent.Succeeded",
                    "arguments": {"parameters": _passed("verifier-image", verify_extra, VERIFIER_PREFIX)},
                },
            ],
        },
    }


def _passed(image: str, extra: list[str], prefix: str) -> list[Parameter]:
    passed: list[Parameter] = [
        {"name": "index", "value": inputs("index")},
        {"name": "image", "value": inputs(image)},
        {"name": "attempt", "value": inputs("attempt")},
    ]
    return passed + [{"name": each, "value": inputs(f"{prefix}{each}")} for each in extra]
