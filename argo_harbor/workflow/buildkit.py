"""BuildKit in a build pod: its client for the runner, and its daemon as a native sidecar.

Dockerfile commands are foreign code and get neither Argo's volume nor, as the daemon asks its client for
them, any registry's credentials or build secret. The daemon needs to be privileged, which no pod with an
agent ever is. Its settings (the mirror of Docker Hub, registries without TLS) it writes itself from a
variable, so that BuildKit's own image does.
"""

from __future__ import annotations

from argo_harbor.model.platform import Platform
from argo_harbor.workflow.emit import to_yaml
from argo_harbor.workflow.objects import ResourceRequirements, UserContainer, Volume, VolumeMount
from argo_harbor.workflow.pods import RUNNER_UID

SOCKET_PATH = "/run/buildkit"
ADDRESS = f"unix://{SOCKET_PATH}/buildkitd.sock"
CLIENT_PATH = "/opt/buildkit"
"""Where the runner finds `buildctl`, taken from BuildKit's own image."""
VOLUMES: list[Volume] = [
    {"name": "buildkit-socket", "emptyDir": {}},
    {"name": "buildkit-client", "emptyDir": {}},
    {"name": "buildkit-state", "emptyDir": {}},
]
CLIENT_MOUNTS: list[VolumeMount] = [
    {"name": "buildkit-socket", "mountPath": SOCKET_PATH},
    {"name": "buildkit-client", "mountPath": CLIENT_PATH, "readOnly": True},
]
"""Of the runner."""
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


def pod_patch(platform: Platform) -> str:
    """`podSpecPatch` that puts both containers behind Argo's own `init`."""
    return to_yaml(
        {
            "$setElementOrder/initContainers": [
                {"name": name} for name in ("init", "buildctl-installer", "buildkitd")
            ],
            "initContainers": [_installer(platform), _daemon(platform)],
        }
    )


def daemon_config(platform: Platform) -> str:
    """`buildkitd.toml`: which registries have no TLS, and what stands in for Docker Hub."""
    tables = [f'[registry."{host}"]\nhttp = true\n' for host in dict.fromkeys(platform.insecure_registries)]
    if platform.base_image_mirror:
        tables.append(f'[registry."docker.io"]\nmirrors = ["{platform.base_image_mirror}"]\n')
    return "".join(tables)


def _installer(platform: Platform) -> UserContainer:
    return {
        "name": "buildctl-installer",
        "image": platform.images.buildkit,
        "command": ["cp", "/usr/bin/buildctl", f"{CLIENT_PATH}/buildctl"],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "resources": _INSTALLER_RESOURCES,
        "volumeMounts": [{"name": "buildkit-client", "mountPath": CLIENT_PATH}],
    }


def _daemon(platform: Platform) -> UserContainer:
    return {
        "name": "buildkitd",
        "image": platform.images.buildkit,
        "restartPolicy": "Always",
        "command": [
            "sh",
            "-c",
            # The runner is no root and must reach the socket.
            f'printf %s "${_CONFIG_ENV}" > {_CONFIG_PATH} && exec buildkitd --config {_CONFIG_PATH} '
            f"--addr {ADDRESS} --group {RUNNER_UID}",
        ],
        "env": [{"name": _CONFIG_ENV, "value": daemon_config(platform)}],
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
