"""Whether an Argo controller serves the namespace, and its own containers do their part with our accounts.

A workflow of two steps, as runs have them: a pod that leaves an artifact, and one that creates a
NetworkPolicy which belongs to the workflow.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from argo_harbor.cluster.client import Json
from argo_harbor.cluster.pods import Pod
from argo_harbor.doctor import pods
from argo_harbor.doctor.result import Result, failed, ok, skipped
from argo_harbor.doctor.visit import Visit
from argo_harbor.model.platform import Platform
from argo_harbor.workflow import names
from argo_harbor.workflow.emit import to_yaml
from argo_harbor.workflow.pods import unprivileged

CONTROLLER = "argo controller"
STEP = "argo executor"
NETWORK = "argo network step"

OLDEST = (3, 7)
_VERSION = re.compile(r":v?(\d+)\.(\d+)\.(\d+)")
_ENDED = ("Succeeded", "Failed", "Error")
# A controller looks at a new workflow within a second or two.
_UNSEEN_SECONDS = 20.0
_FOLDER = "/doctor"
_STEPS = {"leaves-artifact": STEP, "makes-policy": NETWORK}


def workflow(visit: Visit, platform: Platform) -> list[Result]:
    """Raises: ClusterError, Stopped."""
    body = _workflow(visit, platform)
    name = body["metadata"]["name"]
    visit.make("workflows", body)
    began = time.monotonic()
    while True:
        status = visit.cluster.get(visit.path("workflows", name)).get("status") or {}
        unseen = not status.get("phase") and time.monotonic() - began > _UNSEEN_SECONDS
        nodes = _nodes(status)
        made = _pods_of(name, visit.pods())
        if _decided(nodes, made) or status.get("phase") in _ENDED or unseen or not visit.wait():
            break
    # What was seen of the pods may be older than the end of the workflow.
    made = _pods_of(name, visit.pods(anew=True))
    if not status.get("phase"):
        cure = "see that the workflow-controller runs, and manages this namespace"
        return [
            failed(CONTROLLER, "no controller takes up a workflow", cure),
            *(skipped(step, "no controller starts it") for step in _STEPS.values()),
        ]
    steps = [
        _step(visit, line, nodes.get(step), made, image=platform.images.runner)
        for step, line in _STEPS.items()
    ]
    return [_controller(made), *steps]


def _pods_of(workflow: str, pods: Mapping[str, Pod]) -> dict[str, Pod]:
    return {name: pod for name, pod in pods.items() if pod.workflow == workflow}


def _decided(nodes: Mapping[str, Mapping[str, Any]], made: Mapping[str, Pod]) -> bool:
    """Whether every step has ended, or cannot begin for want of an image."""
    stuck = {pod.node_id for pod in made.values() if pod.pull_errors()}
    return len(nodes) == len(_STEPS) and all(
        node.get("phase") in _ENDED or node.get("id") in stuck for node in nodes.values()
    )


def _controller(made: Mapping[str, Pod]) -> Result:
    """Nothing but the executor's image tells the controller's version to who may not look at its pod."""
    images = {
        str(container.get("image"))
        for pod in made.values()
        for container in (pod.data.get("spec") or {}).get("containers") or ()
        if container.get("name") == "wait"
    }
    for image in images:
        found = _VERSION.search(image)
        if found and (int(found[1]), int(found[2])) < OLDEST:
            cure = f"upgrade Argo Workflows to {OLDEST[0]}.{OLDEST[1]} or later"
            return failed(CONTROLLER, f"its executor is {image}", cure)
        if found:
            return ok(CONTROLLER, f"takes up workflows here; its executor is {image}")
    told = f"its executor is {', '.join(images)}" if images else "its executor was not seen"
    return ok(CONTROLLER, f"takes up workflows here; {told}")


def _step(
    visit: Visit, line: str, node: Mapping[str, Any] | None, made: Mapping[str, Pod], *, image: str
) -> Result:
    """The line of one step; `image` is the runner's."""
    if node is None:
        return failed(line, "the controller has not started it", "see the workflow-controller's log")
    phase, said = str(node.get("phase") or ""), str(node.get("message") or "")
    if phase == "Succeeded":
        fine = {STEP: "reports results and keeps artifacts", NETWORK: "creates a NetworkPolicy"}
        return ok(line, fine[line])
    if phase in _ENDED:
        return failed(line, said or phase, _cure(line, said))
    pod = next((pod for pod in made.values() if pod.node_id == node.get("id")), None)
    if pod is None:
        return failed(line, f"is {phase}: {said or 'it has no pod'}", "see the workflow-controller's log")
    for problem in pod.pull_errors():
        # The runner's image has a line of its own; what else is in the pod is Argo's executor.
        if problem.image != image:
            return pods.pull_failure(line, problem)._replace(hint="set the controller's --executor-image")
        return pods.no_answer(line, visit, pod)
    waits = visit.warning_about(pod.name) or pod.waits_for()
    if not waits:
        return failed(line, f"its pod is still {pod.phase or 'unscheduled'}", pods.PATIENCE)
    return failed(line, f"its pod is {pod.phase}: {waits}", _cure(line, waits))


def _cure(line: str, said: str) -> str:
    if "service-account-token" in said or "forbidden" in said.lower() or "serviceaccount" in said.lower():
        return "argo-harbor install --platform FILE --apply"
    if "secret" in said.lower() and "not found" in said.lower():
        return "make that Secret: see `secrets`"
    if "artifact" in said.lower() or "s3" in said.lower() or "bucket" in said.lower():
        return f"see [store], its Secret, and the ConfigMap {names.ARTIFACT_CONFIGMAP}"
    if line == NETWORK:
        return f"see the rights of the account {names.NETWORK_ACCOUNT}: argo-harbor install … --diff"
    return "see the pod's events and the workflow-controller's log"


def _nodes(status: Json) -> dict[str, Mapping[str, Any]]:
    """The nodes of the steps by entry. So few that Argo never packs them."""
    return {
        str(node.get("displayName")): node
        for node in (status.get("nodes") or {}).values()
        if node.get("type") == "Pod" and str(node.get("displayName")) in _STEPS
    }


def _workflow(visit: Visit, platform: Platform) -> Json:
    labels = visit.labels("argo")
    leave = f"from pathlib import Path; Path('{_FOLDER}/note').write_text('argo-harbor doctor {visit.id}')"
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": visit.name("step"), "labels": labels},
        # Of no pod: that it can be made is the question.
        "spec": {"podSelector": {"matchLabels": visit.labels("nobody")}, "policyTypes": ["Ingress"]},
    }
    steps: list[Json] = [
        {
            "name": "leaves-artifact",
            "container": {
                "image": platform.images.runner,
                "command": ["python", "-c", leave],
                "resources": pods.RESOURCES,
                "securityContext": unprivileged(),
                "volumeMounts": [{"name": "work", "mountPath": _FOLDER}],
            },
            "outputs": {"artifacts": [{"name": "note", "path": f"{_FOLDER}/note", "archive": {"none": {}}}]},
        },
        {
            "name": "makes-policy",
            "executor": {"serviceAccountName": names.NETWORK_ACCOUNT},
            "resource": {"action": "apply", "setOwnerReference": True, "manifest": to_yaml(policy)},
        },
    ]
    entries = [{"name": step["name"], "template": step["name"]} for step in steps]
    return {
        "apiVersion": names.API_VERSION,
        "kind": "Workflow",
        "metadata": {"name": visit.name("argo"), "namespace": visit.cluster.namespace, "labels": labels},
        "spec": {
            "entrypoint": names.MAIN,
            "activeDeadlineSeconds": int(visit.seconds) + 120,
            "ttlStrategy": {"secondsAfterCompletion": 600},
            "serviceAccountName": names.TRIAL_ACCOUNT,
            "automountServiceAccountToken": False,
            "executor": {"serviceAccountName": names.EXECUTOR_ACCOUNT},
            "artifactRepositoryRef": {"configMap": names.ARTIFACT_CONFIGMAP, "key": names.ARTIFACT_KEY},
            "podMetadata": {"labels": {**labels, "sidecar.istio.io/inject": "false"}},
            "podSpecPatch": to_yaml({"enableServiceLinks": False, "terminationGracePeriodSeconds": 1}),
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "imagePullSecrets": pods.pull_secrets(platform),
            "volumes": [{"name": "work", "emptyDir": {}}],
            "templates": [{"name": names.MAIN, "dag": {"failFast": False, "tasks": entries}}, *steps],
        },
    }
