"""What every pod of ours has in common: the runner as Argo's `main`, its volumes, its user, its retries."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from argo_harbor.model.plan import RunPlan
from argo_harbor.model.platform import Platform
from argo_harbor.workflow import names
from argo_harbor.workflow.emit import to_yaml
from argo_harbor.workflow.objects import (
    Container,
    EnvVar,
    ResourceRequirements,
    RetryStrategy,
    SecurityContext,
    Volume,
    VolumeMount,
)

RUNNER_UID = 65532
"""User and group of the runner: the usual "nonroot" of small images."""

# The runner is idle most of the time; its peaks are unpacking and packing archives.
RUNNER_RESOURCES: ResourceRequirements = {
    "requests": {"cpu": "100m", "memory": "256Mi"},
    "limits": {"cpu": "2", "memory": "2Gi"},
}

RETRY_EXPRESSION = (
    "!(lastRetry.message contains 'deadline') && "
    "(lastRetry.status == 'Error' || asInt(lastRetry.exitCode) in [-1, 75, 137, 143, 255])"
)
"""Another try after a lost or killed pod, and when the runner asks for one (75); not when the deadline was
spent. 255 is what a node's container runtime says of containers that it lost when it was started again."""


ACCOUNT_PATCH = to_yaml({"automountServiceAccountToken": True})
"""Of pods whose `main` asks the API server. Argo itself only ever says no: where the account says no as well,
the template's own field does nothing."""


class RunReference(NamedTuple):
    """How the pods of a workflow name the run: nothing in an object repeats a run's id, so that it can be
    submitted any number of times."""

    run: str
    workflow_uid: str


WHOLE = RunReference(run="{{workflow.name}}", workflow_uid="{{workflow.uid}}")
PART = RunReference(
    run=f"{{{{workflow.parameters.{names.RUN_PARAMETER}}}}}",
    workflow_uid=f"{{{{workflow.parameters.{names.WORKFLOW_PARAMETER}}}}}",
)
"""A part belongs to the run of its parent, whose name and UID it gets as parameters."""


def runner(
    plan: RunPlan,
    verb: str,
    reference: RunReference,
    *,
    arguments: Iterable[str] = (),
    env: Iterable[EnvVar] = (),
    mounts: Iterable[VolumeMount] = (),
) -> Container:
    """The container `main` that runs `python -m argo_harbor.runner <verb>` for this plan."""
    return container(
        plan.head.platform,
        [verb, "--plan", plan.digest, "--run", reference.run, *arguments],
        workflow_uid=reference.workflow_uid,
        env=env,
        mounts=mounts,
    )


def container(
    platform: Platform,
    arguments: list[str],
    *,
    workflow_uid: str,
    env: Iterable[EnvVar] = (),
    mounts: Iterable[VolumeMount] = (),
) -> Container:
    """The container `main` that runs `python -m argo_harbor.runner` with these arguments."""
    return {
        "image": platform.images.runner,
        # Without a command Argo would have to ask the image's registry for it.
        "command": ["python", "-m", "argo_harbor.runner"],
        "args": arguments,
        "env": [
            _from_pod(names.POD_UID_ENV, "metadata.uid"),
            _from_pod(names.NODE_ENV, "spec.nodeName"),
            _from_pod(names.NAMESPACE_ENV, "metadata.namespace"),
            {"name": names.WORKFLOW_UID_ENV, "value": workflow_uid},
            {"name": "HOME", "value": names.WORK_PATH},
            {"name": "TMPDIR", "value": names.WORK_PATH},
            *env,
        ],
        "workingDir": names.WORK_PATH,
        "resources": RUNNER_RESOURCES,
        "securityContext": unprivileged(),
        "volumeMounts": [
            {"name": "platform", "mountPath": names.PLATFORM_PATH, "readOnly": True},
            {"name": "store", "mountPath": names.STORE_PATH, "readOnly": True},
            {"name": "work", "mountPath": names.WORK_PATH},
            *mounts,
        ],
    }


def unprivileged() -> SecurityContext:
    """Of `main`: the only container of a pod that never needs root."""
    return {
        "runAsNonRoot": True,
        "runAsUser": RUNNER_UID,
        "runAsGroup": RUNNER_UID,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


def shared_volumes(platform: Platform) -> list[Volume]:
    """Volumes of the whole workflow: Argo adds to a pod only those that its containers mount."""
    return [
        {"name": "platform", "configMap": {"name": names.PLATFORM_CONFIGMAP}},
        {"name": "store", "secret": {"secretName": platform.store.secret}},
        # Argo's executor reads output artifacts from volumes even after `main` was killed.
        {"name": "work", "emptyDir": {}},
    ]


def retries(plan: RunPlan) -> RetryStrategy:
    return retried(plan.head.max_retries + plan.head.infra_retries)


def retried(limit: int) -> RetryStrategy:
    """So many more tries, each when the one before asked for it or was lost."""
    return {"limit": str(limit), "retryPolicy": "Always", "expression": RETRY_EXPRESSION}


def millicores(cpus: float) -> str:
    """Kubernetes' quantity for a number of cores, rounded up to a thousandth."""
    return f"{math.ceil(round(cpus * 1000, 6))}m"


def mebibytes(megabytes: int) -> str:
    return f"{megabytes}Mi"


def _from_pod(name: str, path: str) -> EnvVar:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
