"""The build step of one image: the runner asks the registry first, and builds with BuildKit only what is
not there.

BuildKit's daemon runs beside the runner as a native sidecar, put in by `podSpecPatch`: Dockerfile commands
are foreign code and get neither Argo's volume nor, as the daemon asks its client for them, any registry's
credentials. It needs to be privileged, which no pod with an agent ever is. Its settings (the mirror of Docker
Hub, registries without TLS) it writes itself from a variable, so that BuildKit's own image does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from argo_harbor.model.plan import RunPlan
from argo_harbor.model.platform import Platform
from argo_harbor.workflow import names
from argo_harbor.workflow.emit import to_yaml
from argo_harbor.workflow.objects import (
    DAGTask,
    KeyToPath,
    ResourceRequirements,
    Template,
    UserContainer,
    Volume,
    VolumeMount,
)
from argo_harbor.workflow.pods import RUNNER_UID, RunReference, retries, runner
from argo_harbor.workflow.tasks import PlannedTask, Side
from argo_harbor.workflow.text import inputs, parameter

SOCKET_PATH = "/run/buildkit"
ADDRESS = f"unix://{SOCKET_PATH}/buildkitd.sock"
CLIENT_PATH = "/opt/buildkit"
"""Where the runner finds `buildctl`, taken from BuildKit's own image."""
_CONFIG_ENV = "BUILDKITD_CONFIG"
_CONFIG_PATH = "/tmp/buildkitd.toml"

# Room for compilers; the size of images is bounded by the node's disk.
_RESOURCES: ResourceRequirements = {
    "requests": {"cpu": "500m", "memory": "1Gi", "ephemeral-storage": "8Gi"},
    "limits": {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "64Gi"},
}
_INSTALLER_RESOURCES: ResourceRequirements = {
    "requests": {"cpu": "10m", "memory": "32Mi"},
    "limits": {"cpu": "500m", "memory": "128Mi"},
}
# The name of a build's entry stays short enough to be read; the rest is its image key.
_STEM = 48


class Build(NamedTuple):
    """One image to build: where its context lies, and the name of its DAG entry."""

    key: str
    """Image key, 64 hex."""
    task: int
    """Index of the first task that uses the image."""
    side: Side
    name: str


def builds(tasks: Iterable[PlannedTask]) -> dict[str, Build]:
    """Every image that the tasks need built, by key, each named after the first task that uses it.

    `runs submit` and `status` find the build entries of a run by these names.
    """
    found: dict[str, Build] = {}
    taken: set[str] = set()
    for task in tasks:
        for side, image in task.images:
            if image.kind != "build" or image.key in found:
                continue
            name = f"build-{task.dag_name[:_STEM]}" + ("" if side == "agent" else f"-{side}")
            if name in taken or len(task.dag_name) > _STEM:
                name = f"{name}-{image.key[:8]}"
            taken.add(name)
            found[image.key] = Build(image.key, task.index, side, name)
    return found


def build_entry(build: Build, depends: str) -> DAGTask:
    entry: DAGTask = {"name": build.name, "template": names.BUILD}
    if depends:
        entry["depends"] = depends
    arguments = [parameter("index", str(build.task))]
    if build.side != "agent":
        arguments.append(parameter("side", build.side))
    entry["arguments"] = {"parameters": arguments}
    return entry


def build_template(plan: RunPlan, reference: RunReference) -> Template:
    logins = _logins(plan)
    mounts: list[VolumeMount] = [
        {"name": "buildkit-socket", "mountPath": SOCKET_PATH},
        {"name": "buildkit-client", "mountPath": CLIENT_PATH, "readOnly": True},
    ]
    for secret, volume in logins.items():
        path = f"{names.REGISTRY_PATH}/{secret}"
        mounts.append({"name": volume["name"], "mountPath": path, "readOnly": True})
    volumes: list[Volume] = [
        {"name": "buildkit-socket", "emptyDir": {}},
        {"name": "buildkit-client", "emptyDir": {}},
        {"name": "buildkit-state", "emptyDir": {}},
        *logins.values(),
    ]
    return {
        "name": names.BUILD,
        "inputs": {"parameters": [{"name": "index"}, {"name": "side", "value": "agent"}]},
        "metadata": {"labels": {names.TASK_LABEL: inputs("index"), names.NET_LABEL: names.NET_BUILD}},
        "serviceAccountName": names.BUILD_ACCOUNT,
        "activeDeadlineSeconds": plan.head.limits.build_seconds,
        "retryStrategy": retries(plan),
        "volumes": volumes,
        "container": runner(
            plan,
            "build",
            reference,
            arguments=["--task", inputs("index"), "--side", inputs("side"), "--try", "{{retries}}"],
            mounts=mounts,
        ),
        "podSpecPatch": to_yaml(
            {
                "$setElementOrder/initContainers": [
                    {"name": name} for name in ("init", "buildctl-installer", "buildkitd")
                ],
                "initContainers": [_installer(plan), _daemon(plan)],
            }
        ),
    }


def daemon_config(platform: Platform) -> str:
    """`buildkitd.toml`: which registries have no TLS, and what stands in for Docker Hub."""
    tables = [f'[registry."{host}"]\nhttp = true\n' for host in dict.fromkeys(platform.insecure_registries)]
    if platform.base_image_mirror:
        tables.append(f'[registry."docker.io"]\nmirrors = ["{platform.base_image_mirror}"]\n')
    return "".join(tables)


def _logins(plan: RunPlan) -> dict[str, Volume]:
    """The Secrets with registry logins as volumes, by name: for pushing, and for base images.

    Optional, since the runner can say which one is missing and a pod that waits for it cannot.
    """
    secrets = plan.head.platform.secrets
    wanted = dict.fromkeys(name for name in (secrets.registry, *secrets.image_pull) if name)
    item: KeyToPath = {"key": ".dockerconfigjson", "path": "config.json"}
    return {
        secret: {
            "name": f"registry-{number}",
            "secret": {"secretName": secret, "items": [item], "optional": True},
        }
        for number, secret in enumerate(wanted)
    }


def _installer(plan: RunPlan) -> UserContainer:
    return {
        "name": "buildctl-installer",
        "image": plan.head.platform.images.buildkit,
        "command": ["cp", "/usr/bin/buildctl", f"{CLIENT_PATH}/buildctl"],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "resources": _INSTALLER_RESOURCES,
        "volumeMounts": [{"name": "buildkit-client", "mountPath": CLIENT_PATH}],
    }


def _daemon(plan: RunPlan) -> UserContainer:
    return {
        "name": "buildkitd",
        "image": plan.head.platform.images.buildkit,
        "restartPolicy": "Always",
        "command": [
            "sh",
            "-c",
            # The runner is no root and must reach the socket.
            f'printf %s "${_CONFIG_ENV}" > {_CONFIG_PATH} && exec buildkitd --config {_CONFIG_PATH} '
            f"--addr {ADDRESS} --group {RUNNER_UID}",
        ],
        "env": [{"name": _CONFIG_ENV, "value": daemon_config(plan.head.platform)}],
        "securityContext": {"privileged": True},
        "resources": _RESOURCES,
        "startupProbe": {
            "exec": {"command": ["buildctl", "--addr", ADDRESS, "debug", "workers"]},
            "periodSeconds": 1,
            "failureThreshold": 120,
        },
        "volumeMounts": [
            {"name": "buildkit-socket", "mountPath": SOCKET_PATH},
            {"name": "buildkit-state", "mountPath": "/var/lib/buildkit"},
        ],
    }
