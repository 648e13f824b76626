"""Waits for probe pods and reads what they say, or why they say nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from argo_harbor.cluster.client import Json
from argo_harbor.cluster.pods import Pod, PullError
from argo_harbor.doctor.result import Result, failed, skipped
from argo_harbor.doctor.visit import Visit
from argo_harbor.model.platform import Platform
from argo_harbor.workflow.pods import unprivileged

MAIN = "main"
PATIENCE = "give it more time: --seconds 180"
"""The cure where time ran out and nothing else is known to be wrong."""
RESOURCES = {
    "requests": {"cpu": "10m", "memory": "64Mi"},
    "limits": {"cpu": "1", "memory": "512Mi"},
}


def probe(platform: Platform, name: str, question: Json | None = None, **fields: Any) -> Json:
    """A container that runs one probe in the runner's image, with the rights of a runner."""
    asked = [] if question is None else [json.dumps(question)]
    return {
        "name": MAIN,
        "image": platform.images.runner,
        "command": ["python", "-m", "argo_harbor.doctor.probe", name, *asked],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": RESOURCES,
        "securityContext": unprivileged(),
        **fields,
    }


def pull_secrets(platform: Platform) -> list[dict[str, str]]:
    return [{"name": name} for name in platform.secrets.image_pull if name]


def ended(visit: Visit, name: str) -> Pod | None:
    """The pod once it has ended, or cannot go on for want of an image, or when there is no more time.

    None where it was never seen. Raises: ClusterError, Stopped.
    """
    while True:
        pod = visit.pod(name)
        if pod and (pod.phase in ("Succeeded", "Failed") or pod.pull_errors()):
            return pod
        if not visit.wait():
            return pod


def answer(pod: Pod | None) -> Json | None:
    """What the probe in `main` left; None where it left nothing that is one."""
    terminated = dict(states(pod)).get(MAIN, {}).get("terminated") or {} if pod else {}
    try:
        said = json.loads(terminated.get("message") or "")
    except ValueError:
        return None
    return said if isinstance(said, dict) and "crash" not in said else None


def no_answer(name: str, visit: Visit, pod: Pod | None) -> Result:
    """Why a probe pod said nothing, as the line of the check that needed it."""
    if pod is None:
        return failed(name, "the probe pod did not come to be", f"see events in {visit.cluster.namespace}")
    if pod.pull_errors():
        return skipped(name, "needs the runner's image, which the node does not get", "see `image runner`")
    terminated = dict(states(pod)).get(MAIN, {}).get("terminated")
    if terminated:
        return _ended_badly(name, terminated)
    waits = pod.waits_for() or visit.warning_about(pod.name)
    if not waits:
        return failed(name, f"the probe pod is still {pod.phase or 'unscheduled'}", PATIENCE)
    return failed(name, f"the probe pod is {pod.phase}: {waits}", "see what the nodes can take")


def pull_failure(name: str, problem: PullError) -> Result:
    """The line of an image that the node does not get."""
    cure = (
        "name a Secret with its registry's login in secrets.image_pull"
        if problem.unauthorized
        else "push it there, or correct its reference in [images] of the platform file"
    )
    # Container runtimes wrap the cause in one "failed to …" after another.
    _, found, cause = (problem.message or problem.reason).rpartition("failed to ")
    return failed(name, f"{problem.image}: {found}{cause}", cure)


def states(pod: Pod) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and state of every container that the kubelet has told about."""
    status = pod.data.get("status") or {}
    for kind in ("initContainerStatuses", "containerStatuses"):
        for each in status.get(kind) or ():
            yield str(each.get("name")), each.get("state") or {}


def _ended_badly(name: str, terminated: Mapping[str, Any]) -> Result:
    said = str(terminated.get("message") or "").strip()
    if "No module named" in said:
        cure = "set images.runner to the runner of this version"
        return failed(name, "the runner's image has no such probe: it is of another version", cure)
    last = said.splitlines()[-1] if said else str(terminated.get("reason") or "no reason is given")
    return failed(
        name, f"the probe ended with status {terminated.get('exitCode')}: {last}"[:400], "repeat it"
    )
