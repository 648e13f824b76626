"""The canary's gate: a step that ends the run early when the first tasks show that the rest would be wasted.

The runner looks at the records of the plan's canary tasks and exits 1 when one of them met an infrastructure,
installation, login or judge error; everything behind the gate then never starts, and the merge follows.
"""

from __future__ import annotations

from argo_harbor.model.plan import RunPlan
from argo_harbor.workflow import names
from argo_harbor.workflow.objects import Template
from argo_harbor.workflow.pods import RunReference, retries, runner

# It reads a few small files.
_DEADLINE = 600


def gate_template(plan: RunPlan, reference: RunReference) -> Template:
    return {
        "name": names.GATE,
        "metadata": {"labels": {names.NET_LABEL: names.NET_SYSTEM}},
        "activeDeadlineSeconds": _DEADLINE,
        "retryStrategy": retries(plan),
        "container": runner(plan, "gate", reference),
    }
