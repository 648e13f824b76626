"""The containers beside the sandbox of a trial pod, from the compose file of its task.

They start one after another, behind the egress container, so that the fence stands before their first
instruction, and before the sandbox, so that an agent finds them ready. All text in them is a task's: it goes
into the patch as `text.foreign`. Used by `sandbox`.
"""

from __future__ import annotations

from typing import NamedTuple, TypedDict

from argo_harbor.model.plan import RunPlan, ServicePlan, ServiceVariable
from argo_harbor.model.services import HealthProbe, ServiceMount
from argo_harbor.model.task import MAIN_SERVICE
from argo_harbor.workflow import names
from argo_harbor.workflow.confinement import confined, quantities, requirements
from argo_harbor.workflow.objects import (
    EmptyDirVolumeSource,
    EnvVar,
    HostAlias,
    Probe,
    SecurityContext,
    UserContainer,
    Volume,
    VolumeMount,
)
from argo_harbor.workflow.pods import RunReference, mebibytes
from argo_harbor.workflow.text import SECRET_REFERENCE, foreign, verbatim


class Beside(NamedTuple):
    """What a task's compose file adds to its pod."""

    services: tuple[ServicePlan, ...] = ()
    mounts: tuple[ServiceMount, ...] = ()
    """Of the sandbox."""

    def as_data(self) -> list[object]:
        return [[each.as_data() for each in part] for part in self]


ALONE = Beside()

GRACE_SECONDS = 60
"""Less than for other pods: a server that ignores the first signal, as many do when they are process 1, keeps
its pod for so long after each trial. Still enough for the runner to upload a trial that is cancelled."""


def containers(plan: RunPlan, beside: Beside, reference: RunReference) -> list[UserContainer]:
    """The services in the order in which they start."""
    mounts = _Mounts(beside)
    return [_container(plan, service, reference, mounts) for service in beside.services]


class OfPod(TypedDict):
    """What a pod with services has besides their containers."""

    hostAliases: list[HostAlias]
    terminationGracePeriodSeconds: int


def of_pod(beside: Beside) -> OfPod:
    """The names of the services, as all containers of a pod have one address; and the pod's patience."""
    names_there = [MAIN_SERVICE, *(each.name for each in beside.services)]
    return {
        "hostAliases": [{"ip": "127.0.0.1", "hostnames": names_there}],
        "terminationGracePeriodSeconds": GRACE_SECONDS,
    }


def volumes(beside: Beside) -> list[Volume]:
    """Shared folders, and folders in memory; all empty at first, gone with the pod."""
    return _Mounts(beside).volumes


def mounts_of_main(beside: Beside) -> list[VolumeMount]:
    """What the sandbox mounts of them."""
    return _Mounts(beside).of(MAIN_SERVICE, beside.mounts)


class _Mounts:
    """Volumes by what they stand for: a name of the compose file, or one container's memory."""

    def __init__(self, beside: Beside) -> None:
        self.volumes: list[Volume] = []
        self._names: dict[tuple[str, str], str] = {}
        self._add(MAIN_SERVICE, beside.mounts)
        for service in beside.services:
            self._add(service.name, service.mounts)

    def of(self, container: str, mounts: tuple[ServiceMount, ...]) -> list[VolumeMount]:
        return [self._mount(container, mount) for mount in mounts]

    def _mount(self, container: str, mount: ServiceMount) -> VolumeMount:
        made: VolumeMount = {
            "name": self._names[_key(container, mount)],
            "mountPath": verbatim(mount.path),
        }
        if mount.read_only:
            made["readOnly"] = True
        return made

    def _add(self, container: str, mounts: tuple[ServiceMount, ...]) -> None:
        for mount in mounts:
            key = _key(container, mount)
            if key in self._names:
                continue
            name = self._names[key] = f"shared-{len(self._names)}"
            folder: EmptyDirVolumeSource = {} if mount.volume else {"medium": "Memory"}
            if mount.size_mb:
                folder["sizeLimit"] = mebibytes(mount.size_mb)
            self.volumes.append({"name": name, "emptyDir": folder})


def _key(container: str, mount: ServiceMount) -> tuple[str, str]:
    return (mount.volume, "") if mount.volume else (container, mount.path)


def _container(
    plan: RunPlan, service: ServicePlan, reference: RunReference, mounts: _Mounts
) -> UserContainer:
    container: UserContainer = {
        "name": f"{names.SERVICE_PREFIX}{service.name}",
        "image": service.image.reference,
        "env": [_variable(plan, variable, reference) for variable in service.environment],
        "securityContext": _security(service),
        "resources": requirements(
            quantities(service.resources.request), quantities(service.resources.limit), ""
        ),
        "volumeMounts": mounts.of(service.name, service.mounts),
        # The last lines of its log, where it can be seen why it failed.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if not service.once:
        container["restartPolicy"] = "Always"
    if service.entrypoint is not None:
        container["command"] = [foreign(word) for word in service.entrypoint]
    if service.command is not None:
        container["args"] = [foreign(word) for word in service.command]
    if service.working_dir:
        container["workingDir"] = verbatim(service.working_dir)
    if service.probe is not None:
        container["startupProbe"] = _probe(service.probe)
    return container


def _security(service: ServicePlan) -> SecurityContext:
    context = confined()
    if service.user is not None:
        context["runAsUser"] = service.user
    if service.group is not None:
        context["runAsGroup"] = service.group
    return context


def _probe(probe: HealthProbe) -> Probe:
    return {
        "exec": {"command": [foreign(word) for word in probe.command]},
        "periodSeconds": probe.period_seconds,
        "timeoutSeconds": probe.timeout_seconds,
        "failureThreshold": probe.failures,
        # An unhealthy container has nothing to finish.
        "terminationGracePeriodSeconds": 1,
    }


def _variable(plan: RunPlan, variable: ServiceVariable, reference: RunReference) -> EnvVar:
    """A variable with its text, or with what the run grants: from where the grant says."""
    if not variable.granted:
        return {"name": variable.name, "value": foreign(variable.text)}
    [grant] = [each for each in plan.head.grants.target if each.name == variable.granted]
    if grant.kind == "lit":
        return {"name": variable.name, "value": foreign(grant.value)}
    if grant.kind == "secret" and (match := SECRET_REFERENCE.fullmatch(grant.value)):
        secret, key = match.groups()
    else:
        secret, key = names.host_secret(reference.run), grant.name
    return {"name": variable.name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
