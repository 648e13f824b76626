"""The exit handler: one container that merges what the run left in the store, whatever became of the run.

It is a single container because `argo stop` fails any other kind of handler in older releases, and it
repeats itself up to three times inside the process because Argo retries nothing after a stop. Its account
may read the workflow and its pods, to say why trials are missing.
"""

from __future__ import annotations

from argo_harbor.model.plan import RunPlan
from argo_harbor.workflow import names
from argo_harbor.workflow.objects import Template
from argo_harbor.workflow.pods import ACCOUNT_PATCH, WHOLE, runner


def merge_template(plan: RunPlan) -> Template:
    return {
        "name": names.MERGE,
        "metadata": {"labels": {names.NET_LABEL: names.NET_SYSTEM}},
        "serviceAccountName": names.MERGE_ACCOUNT,
        "automountServiceAccountToken": True,
        "podSpecPatch": ACCOUNT_PATCH,
        "activeDeadlineSeconds": plan.head.limits.merge_seconds,
        "container": runner(plan, "merge", WHOLE),
    }
