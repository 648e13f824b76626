"""One Workflow around its templates: what holds for the whole run, and what people read in Argo's list of
runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from argo_harbor.model.plan import RunPlan
from argo_harbor.model.platform import Platform
from argo_harbor.workflow import names
from argo_harbor.workflow.emit import to_yaml
from argo_harbor.workflow.limits import GENERATED_SUFFIX, MAX_WORKFLOW_NAME
from argo_harbor.workflow.objects import (
    CronWorkflow,
    ObjectMeta,
    Parameter,
    Template,
    Workflow,
    WorkflowMetadata,
    WorkflowSpec,
    WorkflowTemplate,
)
from argo_harbor.workflow.pods import PART, WHOLE, shared_volumes
from argo_harbor.workflow.schedule import NEVER
from argo_harbor.workflow.text import prose

Kind = Literal["workflow", "workflowtemplate", "cronworkflow"]
KINDS: tuple[Kind, ...] = get_args(Kind)
AnyWorkflow = Workflow | WorkflowTemplate | CronWorkflow

TITLE_ANNOTATION = "workflows.argoproj.io/title"
DESCRIPTION_ANNOTATION = "workflows.argoproj.io/description"

# SIGTERM to SIGKILL: what a runner needs to stop the agent and to upload what there is.
_GRACE_SECONDS = 120


def whole(plan: RunPlan, templates: Sequence[Template], *, builds: int) -> Workflow:
    """The Workflow of a run, or the parent of its parts: it ends with the merge. `builds` counts images to
    build."""
    spec = _spec(plan, templates, seconds=run_seconds(plan, builds) + plan.head.limits.merge_seconds)
    return {
        "apiVersion": names.API_VERSION,
        "kind": "Workflow",
        "metadata": {
            "generateName": "run-",
            "namespace": plan.head.platform.namespace,
            "labels": labels_of(plan),
            "annotations": annotations_of(plan),
        },
        "spec": {"entrypoint": names.MAIN, "onExit": names.MERGE, **spec},
    }


def part(plan: RunPlan, templates: Sequence[Template], *, number: int, builds: int) -> Workflow:
    """One part of a split run. Its name and parameters are set by the parent's step that creates it."""
    spec = _spec(plan, templates, seconds=run_seconds(plan, builds))
    # Parts go with their parent, not before its merge has asked them why trials are missing.
    del spec["ttlStrategy"]
    # Without a value the part could not be linted; the parent always sets both.
    parameters: list[Parameter] = [
        {"name": names.RUN_PARAMETER, "value": "unset"},
        {"name": names.WORKFLOW_PARAMETER, "value": "unset"},
    ]
    return {
        "apiVersion": names.API_VERSION,
        "kind": "Workflow",
        "metadata": {
            "generateName": f"part-{number:03}-",
            "namespace": plan.head.platform.namespace,
            "labels": labels_of(plan),
            "annotations": {**annotations_of(plan), TITLE_ANNOTATION: f"{_title(plan)} · part {number:03}"},
        },
        "spec": {
            "entrypoint": names.MAIN,
            **spec,
            "arguments": {"parameters": parameters},
            "podMetadata": {"labels": {**_pod_labels(plan), names.RUN_LABEL: PART.run}},
        },
    }


def as_kind(workflow: Workflow, plan: RunPlan, kind: Kind, schedule: str | None) -> AnyWorkflow:
    """The workflow as something to run many times: `argo submit --from workflowtemplate/…`, or on a
    schedule."""
    if kind == "workflow":
        return workflow
    metadata: ObjectMeta = {
        "name": stored_name(plan),
        "namespace": plan.head.platform.namespace,
        "labels": labels_of(plan),
        "annotations": annotations_of(plan),
    }
    of_runs: WorkflowMetadata = {"labels": labels_of(plan), "annotations": annotations_of(plan)}
    if kind == "workflowtemplate":
        template: WorkflowTemplate = {
            "apiVersion": names.API_VERSION,
            "kind": "WorkflowTemplate",
            "metadata": metadata,
            "spec": {**workflow["spec"], "workflowMetadata": of_runs},
        }
        return template
    cron: CronWorkflow = {
        "apiVersion": names.API_VERSION,
        "kind": "CronWorkflow",
        "metadata": metadata,
        "spec": {
            "schedules": [schedule or NEVER],
            # A run that takes longer than the schedule's step is not joined by another.
            "concurrencyPolicy": "Forbid",
            "workflowMetadata": {"labels": labels_of(plan), "annotations": annotations_of(plan)},
            "workflowSpec": workflow["spec"],
        },
    }
    if schedule is None:
        cron["spec"]["suspend"] = True
    return cron


def stored_name(plan: RunPlan) -> str:
    """Name of a WorkflowTemplate or CronWorkflow: the taskset's, short enough for the names of its runs."""
    kept = "".join(
        char if char in "abcdefghijklmnopqrstuvwxyz0123456789" else "-"
        for char in plan.head.taskset.name.lower()
    )
    return kept[: MAX_WORKFLOW_NAME - GENERATED_SUFFIX].strip("-") or "suite"


def run_seconds(plan: RunPlan, builds: int) -> int:
    """Builds, queue and run: Argo's guard behind the run's own clocks."""
    limits = plan.head.limits
    rounds = math.ceil(builds / limits.cap)
    return rounds * limits.build_seconds + limits.queue_timeout_seconds + limits.timeout_seconds


def labels_of(plan: RunPlan) -> dict[str, str]:
    return {names.PLAN_LABEL: names.plan_label(plan)}


def annotations_of(plan: RunPlan) -> dict[str, str]:
    head = plan.head
    attempts = f", {head.n_attempts} attempts each" if head.n_attempts > 1 else ""
    model = f", model {head.agent.model.ref}" if head.agent.model else ""
    skipped = len(head.tasks) - len(head.running)
    left_out = f", {skipped} skipped" if skipped else ""
    return {
        TITLE_ANNOTATION: _title(plan),
        DESCRIPTION_ANNOTATION: prose(f"profile {head.profile.name}{model}{attempts}{left_out}"),
        names.PLAN_LABEL: plan.digest,
        names.PROFILE_ANNOTATION: head.profile.name,
        names.TASKSET_ANNOTATION: prose(head.taskset.ref),
    }


def _title(plan: RunPlan) -> str:
    count = len(plan.head.running)
    noun = "task" if count == 1 else "tasks"
    titles = [prose(plan.head.taskset.name), prose(plan.head.agent.name), f"{count} {noun}"]
    return " · ".join(filter(None, titles))


def _pod_labels(plan: RunPlan) -> dict[str, str]:
    return pod_labels(labels_of(plan))


def pod_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Labels of all pods of a workflow with these labels."""
    return {
        **labels,
        names.RUN_LABEL: WHOLE.run,
        # A mesh's own proxy would keep pods alive and see the traffic of sandboxes.
        "sidecar.istio.io/inject": "false",
    }


def _spec(plan: RunPlan, templates: Sequence[Template], *, seconds: int) -> WorkflowSpec:
    head = plan.head
    return spec_of(head.platform, templates, cap=head.limits.cap, seconds=seconds, labels=_pod_labels(plan))


def spec_of(
    platform: Platform,
    templates: Sequence[Template],
    *,
    cap: int,
    seconds: int,
    labels: dict[str, str],
) -> WorkflowSpec:
    """What holds for every workflow of ours. `labels` are those of its pods."""
    spec: WorkflowSpec = {
        "parallelism": cap,
        "activeDeadlineSeconds": seconds,
        "serviceAccountName": names.TRIAL_ACCOUNT,
        "automountServiceAccountToken": False,
        "executor": {"serviceAccountName": names.EXECUTOR_ACCOUNT},
        "artifactRepositoryRef": {"configMap": names.ARTIFACT_CONFIGMAP, "key": names.ARTIFACT_KEY},
        "podGC": {
            "strategy": "OnPodSuccess",
            "deleteDelayDuration": f"{platform.workflow.pod_gc_delay_seconds}s",
        },
        "ttlStrategy": {"secondsAfterCompletion": platform.workflow.ttl_seconds},
        "podMetadata": {"labels": labels},
        "podSpecPatch": to_yaml(
            {"enableServiceLinks": False, "terminationGracePeriodSeconds": _GRACE_SECONDS}
        ),
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "volumes": shared_volumes(platform),
        "templates": list(templates),
    }
    pull = [name for name in platform.secrets.image_pull if name]
    if pull:
        spec["imagePullSecrets"] = [{"name": name} for name in pull]
    return spec
