"""Whether nodes get every image and find in it what pods will call, and whether native sidecars work."""

from __future__ import annotations

from argo_harbor.cluster.client import Json
from argo_harbor.doctor import pods
from argo_harbor.doctor.probe import PORT
from argo_harbor.doctor.result import Result, failed, ok
from argo_harbor.doctor.visit import Visit, pod_of
from argo_harbor.model.platform import Platform

NAMES = tuple(f"image {name}" for name in ("runner", "execd", "egress", "buildkit"))
SIDECAR = "native sidecars"

_SIDECAR_PORT = PORT + 1
_NEEDED = {
    "runner": ["python", "-c", "import argo_harbor.runner, argo_harbor.doctor.probe"],
    "execd": ["/bin/sh", "-c", "test -f /execd && test -f /bootstrap.sh && command -v head od tr chgrp"],
    "egress": ["/bin/sh", "-c", "test -x /opt/opensandbox-egress/egress"],
    "buildkit": ["/bin/sh", "-c", "command -v buildctl buildkitd"],
}
"""What each image must hold, as a command that ends well where it does."""


def images(visit: Visit, platform: Platform) -> list[Result]:
    """One pod with a container of each image. Raises: ClusterError, Stopped."""
    references = {name: getattr(platform.images, name) for name in _NEEDED}
    containers: list[Json] = [
        {
            "name": name,
            "image": references[name],
            "command": command,
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "resources": pods.RESOURCES,
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
        for name, command in _NEEDED.items()
    ]
    role = "images"
    visit.make("pods", pod_of(visit, role, containers, imagePullSecrets=pods.pull_secrets(platform)))
    while True:
        pod = visit.pod(visit.name(role))
        found = dict(pods.states(pod)) if pod else {}
        pulls = {problem.image: problem for problem in pod.pull_errors()} if pod else {}
        open_ = [
            name
            for name, reference in references.items()
            if reference not in pulls and not found.get(name, {}).get("terminated")
        ]
        if not open_ or not visit.wait():
            break
    results = []
    for name, reference in references.items():
        line = f"image {name}"
        terminated = found.get(name, {}).get("terminated")
        if reference in pulls:
            results.append(pods.pull_failure(line, pulls[reference]))
        elif terminated and terminated.get("exitCode") == 0:
            results.append(ok(line, reference))
        elif terminated:
            said = str(terminated.get("message") or terminated.get("reason") or "").strip()[-200:]
            told = f"{reference} does not hold what pods call" + (f": {said}" if said else "")
            results.append(failed(line, told, f"set images.{name} to a release that does"))
        else:
            waits = (pod.waits_for() or visit.warning_about(pod.name)) if pod else ""
            told = f"{reference} is not there yet: {waits or 'being pulled'}"
            results.append(failed(line, told, pods.PATIENCE))
    return results


def native_sidecar(visit: Visit, platform: Platform) -> list[Result]:
    """A pod whose sidecar must be up before its main container, and must end after it.

    Raises: ClusterError, Stopped.
    """
    beside = pods.probe(
        platform,
        "serve",
        {"port": _SIDECAR_PORT},
        restartPolicy="Always",
        startupProbe={"tcpSocket": {"port": _SIDECAR_PORT}, "periodSeconds": 1, "failureThreshold": 60},
    )
    body = pod_of(
        visit,
        "sidecar",
        [pods.probe(platform, "sidecar", {"port": _SIDECAR_PORT})],
        initContainers=[{**beside, "name": "beside"}],
        imagePullSecrets=pods.pull_secrets(platform),
    )
    visit.make("pods", body)
    pod = pods.ended(visit, visit.name("sidecar"))
    said = pods.answer(pod)
    cure = "native sidecars take Kubernetes 1.29 or later, on the nodes as well"
    if said is None:
        result = pods.no_answer(SIDECAR, visit, pod)
        running = pod is not None and "running" in dict(pods.states(pod)).get("beside", {})
        return [result._replace(hint=cure) if running else result]
    if said["error"]:
        return [failed(SIDECAR, f"the main container starts before its sidecar: {said['error']}", cure)]
    return [ok(SIDECAR, "up before the main container, gone after it")]
