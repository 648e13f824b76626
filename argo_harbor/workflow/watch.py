"""The pod that ends pods of a run which will never start: a wrong image, a refused login, a missing Secret.

Kubernetes keeps such a pod waiting for ever, and it would hold one place under the run's cap until its
deadline, hours later. No container of it runs that could give up, so somebody with eyes on the cluster must.
It is a pod beside the workflow and no step of it: a step would count against the cap for the whole run.
"""

from __future__ import annotations

from argo_harbor.model.plan import RunPlan
from argo_harbor.workflow import names
from argo_harbor.workflow.emit import to_yaml
from argo_harbor.workflow.objects import ResourceRequirements, Template
from argo_harbor.workflow.pods import WHOLE, unprivileged

SUFFIX = "-watch"
"""Behind the run's id: the name of the pod."""

_RESOURCES: ResourceRequirements = {
    "requests": {"cpu": "20m", "memory": "96Mi"},
    "limits": {"cpu": "1", "memory": "256Mi"},
}


def watch_template(plan: RunPlan) -> Template:
    """The step that creates the pod and lets the workflow own it."""
    platform = plan.head.platform
    pull = [name for name in platform.secrets.image_pull if name]
    arguments = ["watch", "--run", WHOLE.run, "--start-seconds", str(plan.head.profile.start_timeout_seconds)]
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{WHOLE.run}{SUFFIX}",
            "labels": {
                names.PLAN_LABEL: names.plan_label(plan),
                names.NET_LABEL: names.NET_SYSTEM,
                "sidecar.istio.io/inject": "false",
            },
        },
        "spec": {
            "serviceAccountName": names.WATCH_ACCOUNT,
            "automountServiceAccountToken": True,
            "restartPolicy": "OnFailure",
            "enableServiceLinks": False,
            # It has nothing to finish.
            "terminationGracePeriodSeconds": 1,
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "imagePullSecrets": [{"name": name} for name in pull],
            "containers": [
                {
                    "name": names.MAIN,
                    "image": platform.images.runner,
                    "command": ["python", "-m", "argo_harbor.runner"],
                    "args": [*arguments, *(part for name in pull for part in ("--login", name))],
                    "env": [
                        {
                            "name": names.NAMESPACE_ENV,
                            "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}},
                        }
                    ],
                    "resources": _RESOURCES,
                    "securityContext": unprivileged(),
                }
            ],
        },
    }
    return {
        "name": names.WATCH,
        "metadata": {"labels": {names.NET_LABEL: names.NET_SYSTEM}},
        "executor": {"serviceAccountName": names.NETWORK_ACCOUNT},
        "retryStrategy": {"limit": "2", "retryPolicy": "Always"},
        "resource": {"action": "apply", "setOwnerReference": True, "manifest": to_yaml(manifest)},
    }
