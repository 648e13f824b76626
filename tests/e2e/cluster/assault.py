"""The attacks, run once for all tests that look at what came of them."""

from __future__ import annotations

import json
import socket
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import tomli_w

from argo_harbor.workflow import names
from argo_harbor.workflow.sandbox import EGRESS_PORT, EXECD_PORT, REFUSALS_PORT
from tests.cluster import addresses
from tests.cluster.errors import ClusterError
from tests.e2e.cluster import hostile
from tests.e2e.cluster.outside import PORT, RANGE, SERVERS, Outside, name_of, outside
from tests.e2e.cluster.remote import Remote

TASKS = ("forged-late", "in-the-open", "out-of-memory", "phase-by-phase", "shut-in", "step-by-step")
"""By index."""
ATTACKING = ("in-the-open", "shut-in")
"""One task may reach any public host, the other none."""
POD_PORTS = {"execd": EXECD_PORT, "egress": EGRESS_PORT}
NODE_PORTS = {
    "kubelet": f"{addresses.NODE_ADDRESS}:{addresses.KUBELET_PORT}",
    "registry": addresses.REGISTRY,
    "private registry": addresses.PRIVATE_REGISTRY,
}
API_SERVERS = {
    "service": f"https://{addresses.API_SERVICE}",
    "endpoint": addresses.API_SERVER,
}


@dataclass(frozen=True)
class Assault:
    """Two runs at the same time: one attacks, and one stands by as a target."""

    remote: Remote
    folder: Path
    run: str
    bystanders: str
    """The run that stands by."""
    addresses: dict[str, str]
    """Of the pods, by task."""
    findings: dict[str, dict[str, Any]]
    """By task of `ATTACKING`, what its program says."""
    silent: list[str]
    """Those of `serving` that did not answer the node either, which shows nothing then."""
    leaks: dict[str, list[str]]
    """By task of `ATTACKING`, files of the sandbox that hold the token of its egress container."""
    outside: Outside

    @cached_property
    def records(self) -> dict[str, list[dict[str, Any]]]:
        """The records of every task's tries."""
        return {task: self.remote.records(self.run, self.folder / "records", task) for task in TASKS}

    def record(self, task: str) -> dict[str, Any]:
        """The only one of a task."""
        (record,) = self.records[task]
        return record

    def file(self, task: str, name: str) -> str:
        """The text of a file of that name among a task's downloaded evidence."""
        assert self.records[task]
        index = self.remote.tasks(self.run)[task]["index"]
        (path,) = (self.folder / "records" / self.run / str(index)).rglob(name)
        return path.read_text()


@contextmanager
def assault(remote: Remote, folder: Path) -> Iterator[Assault]:
    """Run the attacks to their end."""
    platform = _platform(remote, folder)
    suite = hostile.hostile_suite(folder / "hostile", say=print)
    bystander = hostile.waiting_suite(folder / "bystander")
    flags = ("--platform", platform, "--sandbox-profile", "open-internet", "--engine", "argo")
    with outside() as servers:
        other = remote.submit(bystander, *flags)
        run = remote.submit(suite, *flags)
        pods = {task: _waiting(remote, run, TASKS.index(task)) for task in ATTACKING}
        pods["bystander"] = _waiting(remote, other, 0)
        where = {task: pod["status"]["podIP"] for task, pod in pods.items()}
        leaks = {task: _leaks(remote, pods[task]) for task in ATTACKING}
        silent = _silent(serving(where))
        for task in ATTACKING:
            text = json.dumps(targets({name: ip for name, ip in where.items() if name != task}))
            _execute(remote, pods[task], f"cat > {hostile.TARGETS}.part", text=text)
        for task in ATTACKING:
            _execute(remote, pods[task], f"mv {hostile.TARGETS}.part {hostile.TARGETS}")
        wait = f"until [ -e {hostile.FINDINGS} ]; do sleep 0.1; done; cat {hostile.FINDINGS}"
        findings = {task: json.loads(_execute(remote, pods[task], wait)) for task in ATTACKING}
        for pod in pods.values():
            _execute(remote, pod, f"touch {hostile.GO_ON}")
        remote.ended(run)
        remote.ended(other)
        yield Assault(remote, folder, run, other, where, findings, silent, leaks, servers)


def serving(pods: dict[str, str]) -> dict[str, str]:
    """Addresses of the cluster itself at which something listens, by name; `pods` as in `targets`."""
    ports = ((pod, ip, port, number) for pod, ip in pods.items() for port, number in POD_PORTS.items())
    return NODE_PORTS | {f"{pod} {port}": f"{ip}:{number}" for pod, ip, port, number in ports}


def targets(pods: dict[str, str]) -> dict[str, Any]:
    """What a sandbox shall try; `pods` are the addresses of the other ones, by task."""
    dials = {
        f"{pod} {port}": f"{ip}:{number}" for pod, ip in pods.items() for port, number in POD_PORTS.items()
    }
    dials |= NODE_PORTS
    dials |= {f"{server} by address": f"{ip}:{PORT}" for server, ip in SERVERS.items()}
    dials |= {f"{server} by name": f"{name_of(server)}:{PORT}" for server in SERVERS}
    dials |= {f"{server} datagram": f"udp:{ip}:9999" for server, ip in SERVERS.items()}
    # Names that resolve to what is denied.
    dials |= {
        f"{pod} execd by name": f"it.{ip.replace('.', '-')}.{addresses.ADDRESS_DOMAIN}:{EXECD_PORT}"
        for pod, ip in pods.items()
    }
    policy = f"http://127.0.0.1:{EGRESS_PORT}/policy"
    opened = json.dumps({"defaultAction": "allow", "egress": []})
    calls: dict[str, Any] = {}
    for header in ("", "guess"):
        headers = {"OPENSANDBOX-EGRESS-AUTH": header} if header else {}
        for method in ("GET", "PUT", "POST", "PATCH", "DELETE"):
            body = "" if method == "GET" else opened
            calls[f"egress {method} {header}".strip()] = _call(policy, method, headers, body)
    calls["refusals"] = _call(
        f"http://127.0.0.1:{REFUSALS_PORT}/denied/guess", "POST", {}, json.dumps({"hostname": "forged.test"})
    )
    for name, server in API_SERVERS.items():
        calls[f"secrets by {name}"] = _call(f"{server}/api/v1/namespaces/{addresses.NAMESPACE}/secrets")
        calls[f"pods by {name}"] = _call(f"{server}/api/v1/pods")
        calls[f"workflows by {name}"] = _call(f"{server}/apis/{names.API_VERSION}/workflows")
        calls[f"a pod by {name}"] = _call(f"{server}/api/v1/namespaces/default/pods", "POST", {}, "{}")
    store = f"{addresses.STORE}/argo-harbor"
    calls["list the store"] = _call(f"{store}?list-type=2")
    calls["buckets of the store"] = _call(f"{addresses.STORE}/")
    calls["write to the store"] = _call(f"{store}/argo-harbor/forged", "PUT", {}, "forged")
    calls["delete from the store"] = _call(f"{store}/argo-harbor/platform", "DELETE")
    return {
        "dials": dials,
        "lookups": {server: name_of(server) for server in SERVERS},
        "calls": calls,
    }


def _call(
    url: str, method: str = "GET", headers: dict[str, str] | None = None, body: str = ""
) -> dict[str, Any]:
    return {"method": method, "url": url, "headers": headers or {}, "body": body}


def _platform(remote: Remote, folder: Path) -> Path:
    """The cluster's platform, with the range of our servers opened; nothing lost is tried again."""
    settings = tomllib.loads(remote.cluster.platform.read_text())
    settings["undeny"] = [RANGE]
    settings["workflow"]["infra_retries"] = 0
    path = folder / "platform.toml"
    path.write_text(tomli_w.dumps(settings))
    return path


def _waiting(remote: Remote, run: str, index: int) -> dict[str, Any]:
    """The pod of a task, as soon as its solution waits for the test."""

    def ready() -> dict[str, Any] | None:
        for pod in remote.pods(run):
            labels = pod["metadata"]["labels"]
            if labels.get(names.TASK_LABEL) == str(index) and pod["status"].get("phase") == "Running":
                try:
                    _execute(remote, pod, f"test -e {hostile.WAITING}")
                except ClusterError:
                    return None
                return pod
        return None

    pod: dict[str, Any] = remote.until(ready, what=f"task {index} of {run} to wait", seconds=480)
    return pod


def _silent(places: dict[str, str]) -> list[str]:
    """Places that the node itself cannot connect to."""
    silent = []
    for name, place in places.items():
        host, _, port = place.partition(":")
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
        except OSError:
            silent.append(name)
    return silent


def _leaks(remote: Remote, pod: dict[str, Any]) -> list[str]:
    """Where in a sandbox the token of its egress container stands."""
    token = _execute(remote, pod, f"cat {names.EGRESS_TOKEN_PATH}/token", container="egress").strip()
    assert len(token) == 64
    places = "/run /var /etc /opt /tmp /app /logs /root /home /mnt /srv /dev/shm /proc/[0-9]*/environ"
    search = f"grep -rlsF --devices=skip -f /dev/stdin {places} || true"
    return _execute(remote, pod, search, text=token).split()


def _execute(
    remote: Remote, pod: dict[str, Any], script: str, *, text: str | None = None, container: str = "sandbox"
) -> str:
    """Run a script in a container, as only the cluster's administrator can. Raises: ClusterError."""
    place = ("--namespace", remote.cluster.namespace, pod["metadata"]["name"], "--container", container)
    return remote.cluster.kubectl("exec", "--stdin", *place, "--", "sh", "-c", script, text=text, seconds=480)
