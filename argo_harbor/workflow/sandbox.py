"""The side containers of a trial pod: OpenSandbox's execd and egress around the task's own image.

They come in through `podSpecPatch`, after Argo's own `init`: containers that Argo sees in the template get
its shared volume and the template's text, which code under test could use to forge results. Used by
`trial`.
"""

from __future__ import annotations

import json

from argo_harbor.model.plan import RunPlan
from argo_harbor.workflow import names, services
from argo_harbor.workflow.confinement import confined
from argo_harbor.workflow.destinations import infrastructure_hosts
from argo_harbor.workflow.emit import to_yaml
from argo_harbor.workflow.objects import ResourceRequirements, UserContainer, Volume
from argo_harbor.workflow.pods import RUNNER_UID, RunReference
from argo_harbor.workflow.services import ALONE, Beside
from argo_harbor.workflow.text import inputs

EXECD_PORT = 44772
EGRESS_PORT = 18080
REFUSALS_PORT = 18082
"""Where the runner listens on loopback for what egress refuses."""
TOOLS_PATH = "/opt/opensandbox"
EGRESS_STATE_PATH = "/state"

# A large image may take its time to unpack; the start timeout of the profile is the runner's to keep.
_SANDBOX_PROBES = 600
_EGRESS_PROBES = 120

_SMALL: ResourceRequirements = {
    "requests": {"cpu": "10m", "memory": "32Mi"},
    "limits": {"cpu": "500m", "memory": "256Mi"},
}

_INSTALL = f"""\
set -eu
cp /execd {TOOLS_PATH}/
chmod 0755 {TOOLS_PATH}/execd
mkdir -p {TOOLS_PATH}/scratch
chmod 1777 {TOOLS_PATH}/scratch
umask 077
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \\n' > {names.EGRESS_TOKEN_PATH}/token
chgrp {RUNNER_UID} {names.EGRESS_TOKEN_PATH}/token
chmod 0440 {names.EGRESS_TOKEN_PATH}/token
"""

# The token is read inside the container, so that no object of the cluster ever holds it. The address for
# refusals has a secret in its path, since the sandbox reaches that listener too; not the token, because
# egress writes that address to its log when it cannot deliver.
_EGRESS = f"""\
set -eu
OPENSANDBOX_EGRESS_TOKEN="$(cat {names.EGRESS_TOKEN_PATH}/token)"
export OPENSANDBOX_EGRESS_TOKEN
digest="$(printf %s "$OPENSANDBOX_EGRESS_TOKEN" | sha256sum | cut -d ' ' -f 1)"
export OPENSANDBOX_EGRESS_DENY_WEBHOOK="http://127.0.0.1:{REFUSALS_PORT}/denied/$digest"
exec /opt/opensandbox-egress/egress
"""


def volumes(beside: Beside = ALONE) -> list[Volume]:
    """Volumes of a trial pod besides the workflow's; the token's is memory, so that no disk keeps it."""
    return [
        {"name": "opensandbox", "emptyDir": {}},
        {"name": "egress-state", "emptyDir": {}},
        {"name": "egress-token", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        *services.volumes(beside),
    ]


def patch(
    plan: RunPlan, resources: ResourceRequirements, reference: RunReference, beside: Beside = ALONE
) -> str:
    """The `podSpecPatch` of a trial pod; the image is the parameter `image`."""
    runtime = plan.head.profile.runtime_class
    others = services.containers(plan, beside, reference)
    order = ("init", "execd-installer", "egress", *(each["name"] for each in others), "sandbox")
    return to_yaml(
        {
            # Without an order the new containers would stand before Argo's init, whose downloads
            # would then be under the sandbox's network rules.
            "$setElementOrder/initContainers": [{"name": name} for name in order],
            "initContainers": [_installer(plan), _egress(plan), *others, _sandbox(resources, beside)],
            **(services.of_pod(beside) if others else {}),
            **({"runtimeClassName": runtime} if runtime else {}),
        }
    )


def _installer(plan: RunPlan) -> UserContainer:
    return {
        "name": "execd-installer",
        "image": plan.head.platform.images.execd,
        "command": ["/bin/sh", "-c", _INSTALL],
        "securityContext": {
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": ["CHOWN"]},
        },
        "resources": _SMALL,
        "volumeMounts": [
            {"name": "opensandbox", "mountPath": TOOLS_PATH},
            {"name": "egress-token", "mountPath": names.EGRESS_TOKEN_PATH},
        ],
    }


def _egress(plan: RunPlan) -> UserContainer:
    # Argo's executor and the runner share the pod's network, so what they need is open from the start;
    # everything else is closed until the runner has set the rules of a phase.
    rules = {
        "defaultAction": "deny",
        "egress": [{"action": "allow", "target": host} for host in infrastructure_hosts(plan.head.platform)],
    }
    return {
        "name": "egress",
        "image": plan.head.platform.images.egress,
        "restartPolicy": "Always",
        "command": ["/bin/sh", "-c", _EGRESS],
        "env": [
            {"name": "OPENSANDBOX_EGRESS_MODE", "value": "dns+nft"},
            {"name": "OPENSANDBOX_EGRESS_RULES", "value": json.dumps(rules, separators=(",", ":"))},
            {"name": "OPENSANDBOX_EGRESS_POLICY_FILE", "value": f"{EGRESS_STATE_PATH}/policy.json"},
        ],
        "securityContext": {
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]},
        },
        "resources": _SMALL,
        "startupProbe": {
            "httpGet": {"path": "/healthz", "port": EGRESS_PORT},
            "periodSeconds": 1,
            "failureThreshold": _EGRESS_PROBES,
        },
        "volumeMounts": [
            {"name": "egress-state", "mountPath": EGRESS_STATE_PATH},
            {"name": "egress-token", "mountPath": names.EGRESS_TOKEN_PATH, "readOnly": True},
        ],
    }


def _sandbox(resources: ResourceRequirements, beside: Beside) -> UserContainer:
    return {
        "name": "sandbox",
        "image": inputs("image"),
        "restartPolicy": "Always",
        # execd is process 1, which nothing inside can kill, and ends at once when asked to. It gets no
        # program to look after: the container would end with that one, and come back empty, as soon as an
        # agent or we ourselves kill everything.
        "command": [f"{TOOLS_PATH}/execd", "--init"],
        "env": [
            {"name": "EXECD_API_GRACE_SHUTDOWN", "value": "0s"},
            {"name": "EXECD_ACCESS_TOKEN", "value": EXECD_TOKEN},
            {"name": "TMPDIR", "value": f"{TOOLS_PATH}/scratch"},
        ],
        "securityContext": {
            "runAsUser": 0,
            "runAsGroup": 0,
            **confined(),
        },
        "resources": resources,
        "startupProbe": {
            "httpGet": {
                "path": "/ping",
                "port": EXECD_PORT,
                "httpHeaders": [{"name": "X-EXECD-ACCESS-TOKEN", "value": EXECD_TOKEN}],
            },
            "periodSeconds": 1,
            "failureThreshold": _SANDBOX_PROBES,
        },
        "volumeMounts": [{"name": "opensandbox", "mountPath": TOOLS_PATH}, *services.mounts_of_main(beside)],
    }


EXECD_TOKEN = "{{workflow.uid}}"
"""Keeps pods of other runs out of a sandbox. The kubelet's probe must send it, so it stands in the pod, and
the code under test can read it: what must be kept from that code never rests on it."""
