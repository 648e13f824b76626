"""A cluster in which the installation is whole, probe pods answer what a good cluster's would, and Argo runs
steps; tests spoil one thing each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.connect import connect
from argo_harbor.doctor.visit import ROLE_LABEL
from argo_harbor.install.changes import apply
from argo_harbor.install.manifests import Settings, StoreCredentials, manifests
from argo_harbor.model.platform import ImageSettings, Platform, SecretNames, StoreSettings
from tests.support import api_server
from tests.support.whole_api import WholeApi

NAMESPACE = "/api/v1/namespaces/evals"
IMAGES = ImageSettings(runner="r.example/runner:1", execd="r.example/execd:1")
PLATFORM = Platform(
    namespace="evals",
    registry="r.example/suites",
    # Closed to everybody: what is tried from here fails at once, and no test waits for it.
    store=StoreSettings(endpoint="http://127.0.0.1:9"),
    images=IMAGES,
    secrets=SecretNames(registry="push"),
)
GOOD = {
    "supplies": {"store": {"error": "", "skew": 1.0}, "registry": {"error": ""}, "dns": ""},
    "free": {"error": ""},
    "fenced": {
        "passed": 0,
        "closed_after": 0.0,
        "dns": "",
        "places": {"API server": "", "store": ""},
    },
    "sidecar": {"error": ""},
}


@dataclass
class Bench:
    """The cluster, and what its probe pods say by role; an answer of None leaves a pod pending."""

    api: WholeApi
    platform: Platform = PLATFORM
    answers: dict[str, Any] = field(default_factory=lambda: json.loads(json.dumps(GOOD)))
    statuses: dict[str, dict[str, Any]] = field(default_factory=dict)
    """A pod's whole status by role, where no answer is enough."""
    steps: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {
            "leaves-artifact": {"phase": "Succeeded"},
            "makes-policy": {"phase": "Succeeded"},
        }
    )
    """Nodes of the probe workflow by entry."""
    step_pod: Callable[[str], dict[str, Any] | None] = lambda entry: {"phase": "Succeeded"}
    """Status of the pod of an entry; None for an entry without one."""
    executor: str = "quay.example/argoexec:v4.0.5"
    controller: bool = True

    def connect(self) -> Cluster:
        return connect(namespace="evals")

    def admit(self, created: dict[str, Any]) -> None:
        if created["kind"] == "Pod":
            self._run(created)
        elif created["kind"] == "Workflow" and self.controller:
            self._steps(created)

    def _run(self, pod: dict[str, Any]) -> None:
        role = pod["metadata"]["labels"].get(ROLE_LABEL, "")
        if role in self.statuses:
            pod["status"] = self.statuses[role]
        elif role == "target":
            pod["status"] = {"phase": "Running", "podIP": "10.244.0.7"}
        elif role == "images":
            pod["status"] = _ended({each["name"]: "" for each in pod["spec"]["containers"]})
        elif self.answers.get(role) is not None:
            pod["status"] = _ended({"main": json.dumps(self.answers[role])})
        else:
            pod["status"] = {"phase": "Pending"}

    def _steps(self, workflow: dict[str, Any]) -> None:
        name = workflow["metadata"]["name"]
        labels = {**workflow["metadata"]["labels"], "workflows.argoproj.io/workflow": name}
        nodes = {}
        for number, (entry, node) in enumerate(self.steps.items()):
            node_id = f"{name}-{number}"
            nodes[node_id] = {"id": node_id, "type": "Pod", "displayName": entry, **node}
            status = self.step_pod(entry)
            if status is not None:
                self.api.hold(
                    f"{NAMESPACE}/pods/{node_id}",
                    metadata={
                        "labels": labels,
                        "annotations": {"workflows.argoproj.io/node-id": node_id},
                    },
                    spec={"containers": [{"name": "wait", "image": self.executor}]},
                    status=status,
                )
        done = all(node["phase"] in ("Succeeded", "Failed", "Error") for node in self.steps.values())
        workflow["status"] = {"phase": "Succeeded" if done else "Running", "nodes": nodes}


def _ended(messages: dict[str, str]) -> dict[str, Any]:
    return {
        "phase": "Succeeded",
        "containerStatuses": [
            {"name": name, "state": {"terminated": {"exitCode": 0, "message": message}}}
            for name, message in messages.items()
        ],
    }


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr("argo_harbor.doctor.visit._LOOK_SECONDS", 0.01)
    for name in ("ARGO_HARBOR_STORE_ACCESS_KEY", "AWS_ACCESS_KEY_ID"):
        monkeypatch.delenv(name, raising=False)
    with api_server.running(WholeApi()) as api:
        monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig(tmp_path)))
        found = Bench(api)
        settings = Settings(PLATFORM, PLATFORM_TEXT, {"closed": ""}, StoreCredentials("access", "secret"))
        apply(found.connect(), manifests(settings), dry_run=False)
        api.hold(f"{NAMESPACE}/secrets/push", data={".dockerconfigjson": "e30="})
        api.admit = found.admit
        yield found


PLATFORM_TEXT = """\
namespace = "evals"
registry = "r.example/suites"
[store]
endpoint = "http://127.0.0.1:9"
[images]
runner = "r.example/runner:1"
execd = "r.example/execd:1"
[secrets]
registry = "push"
"""
