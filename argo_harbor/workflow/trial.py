"""Templates of trial pods: one for each pod shape, so that a DAG entry carries only what differs between
tasks.

`trial` runs agent and verifier in one sandbox; `agent` and `verify` are its two halves for a separate
verifier (see `verifier`). Tasks with the same resources, deadline and network class share a template. A
suite with more shapes than a workflow can hold templates gets one template per role and network class, with
the rest as parameters; only pods with services keep templates of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from argo_harbor.model import profile
from argo_harbor.model.base import canonical_json, sha256_hex
from argo_harbor.model.plan import Resources, RunPlan, TaskPlan
from argo_harbor.workflow import names, sandbox
from argo_harbor.workflow.confinement import Quantities, quantities, requirements
from argo_harbor.workflow.objects import (
    EnvVar,
    Parameter,
    ResourceRequirements,
    Template,
    Toleration,
    Volume,
    VolumeMount,
)
from argo_harbor.workflow.pods import RunReference, retries, runner
from argo_harbor.workflow.services import ALONE, Beside
from argo_harbor.workflow.text import SECRET_REFERENCE, inputs, parameter

Role = Literal["trial", "agent", "verify"]


class PodShape(NamedTuple):
    """What makes two trial pods differ besides their task and image."""

    role: Role
    resources: Resources
    deadline: int
    """Seconds."""
    net: str
    """Value of the network label."""
    beside: Beside = ALONE
    """Its other containers."""

    @property
    def template(self) -> str:
        """Name of the shape's template."""
        content: list[object] = [self.resources.as_data(), self.deadline, self.net]
        content += self.beside.as_data() if self.beside != ALONE else []
        return f"{self.role}-{sha256_hex(canonical_json(content))[:8]}"


def trial_shape(task: TaskPlan) -> PodShape:
    """Shape of a trial whose verifier shares the agent's sandbox."""
    return PodShape(
        "trial", task.resources.agent, task.outer_seconds, task.rules.network_class, _beside(task)
    )


def agent_shape(task: TaskPlan) -> PodShape:
    """Shape of the agent's half of a trial with a separate verifier."""
    open_phases = {task.rules.setup.mode, task.rules.agent.mode} - {"none"}
    return PodShape(
        "agent",
        task.resources.agent,
        task.outer_seconds,
        names.NET_INTERNET if open_phases else names.NET_NONE,
        _beside(task),
    )


def _beside(task: TaskPlan) -> Beside:
    return Beside(task.services, task.main_mounts)


def verify_shape(task: TaskPlan) -> PodShape:
    """Shape of a separate verifier's pod, with resources and rules of its own."""
    return PodShape(
        "verify",
        task.resources.verifier or task.resources.agent,
        task.verifier_outer_seconds or task.outer_seconds,
        names.NET_NONE if task.rules.verifier.mode == "none" else names.NET_INTERNET,
    )


def fixed_template(plan: RunPlan, shape: PodShape, reference: RunReference) -> Template:
    """The template of one shape, with its resources and deadline written in."""
    return _template(
        plan,
        shape,
        reference,
        name=shape.template,
        deadline=shape.deadline,
        needed=requirements(
            quantities(shape.resources.request), quantities(shape.resources.limit), plan.head.profile.gpu
        ),
    )


def open_name(shape: PodShape) -> str:
    """Name of the template that takes the shape as parameters."""
    return f"{shape.role}-{shape.net}"


def open_template(plan: RunPlan, shape: PodShape, reference: RunReference) -> Template:
    """The template that takes resources and deadline as parameters, for all shapes of one role and
    network."""
    gpu = plan.head.profile.gpu
    request = Quantities(inputs("cpu"), inputs("memory"), inputs("storage"), inputs("gpus"))
    limit = request._replace(
        cpu=inputs("cpu-limit"), memory=inputs("memory-limit"), storage=inputs("storage-limit")
    )
    needed = requirements(request, limit, gpu)
    extra: list[Parameter] = [{"name": each["name"]} for each in shape_arguments(plan, shape)]
    return _template(
        plan,
        shape,
        reference,
        name=open_name(shape),
        deadline=inputs("deadline"),
        needed=needed,
        extra=extra,
    )


def shape_arguments(plan: RunPlan, shape: PodShape, prefix: str = "") -> list[Parameter]:
    """A shape as arguments of its open template; `prefix` tells two shapes of one entry apart."""
    request = quantities(shape.resources.request)
    limit = quantities(shape.resources.limit)
    values = {
        "cpu": request.cpu,
        "memory": request.memory,
        "storage": request.storage,
        "cpu-limit": limit.cpu,
        "memory-limit": limit.memory,
        "storage-limit": limit.storage,
        "deadline": str(shape.deadline),
    }
    if plan.head.profile.gpu:
        values["gpus"] = request.gpus or "0"
    return [parameter(f"{prefix}{name}", value) for name, value in values.items()]


def _template(
    plan: RunPlan,
    shape: PodShape,
    reference: RunReference,
    *,
    name: str,
    deadline: int | str,
    needed: ResourceRequirements,
    extra: Iterable[Parameter] = (),
) -> Template:
    limits = plan.head.profile
    role = shape.role
    model = plan.head.agent.model if role != "verify" else None
    secret = SECRET_REFERENCE.fullmatch(model.secret) if model and model.secret else None
    volumes = sandbox.volumes(shape.beside)
    mounts: list[VolumeMount] = [
        {"name": "egress-token", "mountPath": names.EGRESS_TOKEN_PATH, "readOnly": True}
    ]
    if secret:
        volumes.append(_model_volume(*secret.groups()))
        mounts.append({"name": "model", "mountPath": names.MODEL_PATH, "readOnly": True})
    main = runner(
        plan,
        role,
        reference,
        arguments=["--task", inputs("index"), "--attempt", inputs("attempt"), "--try", "{{retries}}"],
        env=[{"name": names.EXECD_TOKEN_ENV, "value": sandbox.EXECD_TOKEN}, *_granted(plan, role, reference)],
        mounts=mounts,
    )
    template: Template = {
        "name": name,
        "inputs": {
            "parameters": [{"name": "index"}, {"name": "image"}, {"name": "attempt", "value": "0"}, *extra]
        },
        "outputs": {
            "artifacts": [
                {"name": role, "path": names.ARTIFACT_PATH, "optional": True, "archive": {"none": {}}}
            ]
        },
        "metadata": {
            "labels": {
                names.TASK_LABEL: inputs("index"),
                names.ATTEMPT_LABEL: inputs("attempt"),
                names.NET_LABEL: shape.net,
            }
        },
        "activeDeadlineSeconds": deadline,
        "retryStrategy": retries(plan),
        "volumes": volumes,
        "container": main,
        "podSpecPatch": sandbox.patch(plan, needed, reference, shape.beside),
    }
    if limits.node_selector:
        template["nodeSelector"] = dict(sorted(limits.node_selector.items()))
    if limits.tolerations:
        template["tolerations"] = [_toleration(each) for each in limits.tolerations]
    return template


def _toleration(wanted: profile.Toleration) -> Toleration:
    toleration: Toleration = {"operator": wanted.operator}
    if wanted.key:
        toleration["key"] = wanted.key
    if wanted.value:
        toleration["value"] = wanted.value
    if wanted.effect:
        toleration["effect"] = wanted.effect
    return toleration


def _model_volume(secret: str, key: str) -> Volume:
    return {"name": "model", "secret": {"secretName": secret, "items": [{"key": key, "path": "api_key"}]}}


def _granted(plan: RunPlan, role: Role, reference: RunReference) -> list[EnvVar]:
    """Granted variables that live in Secrets, those of the submitter's shell in the run's own. Literal ones
    are read from the plan: their text could be anything.

    The target's grants also answer names in a verifier's environment table, so every role gets them.
    """
    grants = (*plan.head.grants.target, *(plan.head.grants.verifier if role != "agent" else ()))
    found: dict[str, EnvVar] = {}
    for grant in grants:
        if grant.kind == "secret":
            secret, key = grant.value.split("/", 1)
            found[grant.name] = _from_secret(grant.name, secret, key)
        elif grant.kind == "host":
            found[grant.name] = _from_secret(grant.name, names.host_secret(reference.run), grant.name)
    return [found[name] for name in sorted(found)]


def _from_secret(name: str, secret: str, key: str) -> EnvVar:
    return {
        "name": f"{names.GRANT_ENV_PREFIX}{name}",
        "valueFrom": {"secretKeyRef": {"name": secret, "key": key}},
    }
