"""The doctor in front of a real cluster, whole and with faults."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from argo_harbor.cli.main import run
from argo_harbor.cluster.connect import connect
from argo_harbor.doctor import network
from argo_harbor.doctor.visit import LABEL, Visit, pod_of
from argo_harbor.settings.platform import read_platform
from argo_harbor.store.credentials import ACCESS_KEY_ENV, SECRET_KEY_ENV
from argo_harbor.workflow import names
from tests.cluster.cluster import Cluster

pytestmark = pytest.mark.cluster

NAMESPACE = "doctor-test"
Doctor = Callable[..., tuple[int, dict[str, dict[str, Any]]]]


@pytest.fixture
def doctor(cluster_environment: Mapping[str, str], capsys: pytest.CaptureFixture[str]) -> Doctor:
    """Runs the doctor: exit status, and checks by name."""

    def examine(*arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
        capsys.readouterr()
        status = run(["doctor", "--json", *arguments])
        document = json.loads(capsys.readouterr().out)
        return status, {each["name"]: each for each in document["checks"]}

    return examine


def bad(checks: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {name: each["message"] for name, each in checks.items() if each["status"] not in ("ok", "warning")}


def left(cluster: Cluster, namespace: str) -> list[str]:
    """What is there of any doctor and is not on its way out."""
    found = cluster.kubectl(
        "--namespace",
        namespace,
        "get",
        "pods,workflows,networkpolicies",
        f"--selector={LABEL}",
        "--output=json",
    )
    return [
        item["metadata"]["name"]
        for item in json.loads(found)["items"]
        if "deletionTimestamp" not in item["metadata"] and not item["metadata"].get("ownerReferences")
    ]


def test_a_whole_cluster_in_less_than_a_minute(doctor: Doctor, cluster: Cluster) -> None:
    began = time.monotonic()
    status, checks = doctor()
    assert bad(checks) == {}
    assert status == 0
    assert time.monotonic() - began < 60
    assert {"network policy", "policy openings", "native sidecars", "registry", "argo executor"} <= set(
        checks
    )
    assert left(cluster, cluster.namespace) == []


@pytest.fixture
def faulty(
    cluster: Cluster, cluster_environment: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """An installation without the store's keys, an executor's token and a right, and with a wrong image."""
    file = tmp_path / "platform.toml"
    text = re.sub(r"(?m)^namespace = .*$", f'namespace = "{NAMESPACE}"', cluster.platform.read_text())
    absent = f'egress = "{cluster.registry}/argo-harbor/absent:1"'
    file.write_text(re.sub(r"(?m)^egress = .*$", absent, text))
    for name in (ACCESS_KEY_ENV, SECRET_KEY_ENV):
        monkeypatch.delenv(name, raising=False)
    assert run(["install", "--apply", "--platform", str(file)]) == 0
    for what in (f"secret/{names.token_secret(names.EXECUTOR_ACCOUNT)}", f"role/{names.NETWORK_ACCOUNT}"):
        cluster.kubectl("--namespace", NAMESPACE, "delete", what)
    yield file
    assert run(["install", "--uninstall", "--yes", "--namespace", NAMESPACE]) == 0
    # What the probe workflow owned may still be on its way out, and keeps the namespace.
    cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=false")


def test_faults_are_told_apart_each_with_its_cure(doctor: Doctor, faulty: Path, cluster: Cluster) -> None:
    status, checks = doctor("--namespace", NAMESPACE, "--seconds", "150")
    assert status == 1
    wrong = bad(checks)
    assert names.token_secret(names.EXECUTOR_ACCOUNT) in wrong["installation"]
    assert "access_key" in wrong["secrets"]
    assert "no credentials" in wrong["store from pods"]
    assert "argo-harbor/absent:1" in wrong["image egress"]
    assert "not found" in wrong["argo executor"]
    assert "networkpolicies" in wrong["argo network step"]
    assert all(checks[name]["hint"] for name in wrong)
    for name in ("image runner", "network policy", "native sidecars", "dns", "registry", "kubernetes"):
        assert name not in wrong
    assert left(cluster, NAMESPACE) == []


def test_a_fence_that_nobody_enforces(
    cluster: Cluster, cluster_environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def outside(visit: Visit, role: str, *arguments: Any, **spec: Any) -> dict[str, Any]:
        # No policy holds for a pod on the node's own network, as none holds with a CNI that enforces none.
        return pod_of(visit, role, *arguments, **spec, **({"hostNetwork": True} if role == "fenced" else {}))

    monkeypatch.setattr(network, "pod_of", outside)
    visit = Visit(connect(), seconds=150)
    try:
        policy = network.fence(visit, read_platform(cluster.platform))[0]
    finally:
        visit.stop()
        assert visit.leave() == []
    assert policy.status == "failed"
    assert "reaches what the policy closes" in policy.message


def test_somebody_without_rights_and_then_with_those_of_people(
    doctor: Doctor, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = ("serviceaccount", "doctor-test-person")
    cluster.kubectl("create", *account)
    try:
        token = cluster.kubectl("create", "token", account[1]).strip()
        monkeypatch.setenv("KUBECONFIG", str(_with_token(cluster.kubeconfig, token, tmp_path)))
        status, checks = doctor("--platform", str(cluster.platform))
        assert status == 1
        assert set(bad(checks)) >= {"permissions", "network policy", "argo controller"}
        assert checks["permissions"]["status"] == "failed"
        assert checks["network policy"]["status"] == "skipped"
        subject = f"--serviceaccount={cluster.namespace}:{account[1]}"
        role = f"--role={names.USER_ROLE}"
        cluster.kubectl("create", "rolebinding", account[1], role, subject)
        status, checks = doctor("--seconds", "150")
        assert status == 0
        assert checks["permissions"]["status"] == "ok"
        assert checks["argo controller"]["status"] == "ok"
        assert checks["network policy"]["status"] == "skipped"
    finally:
        cluster.kubectl("delete", "--ignore-not-found", f"rolebinding/{account[1]}", "/".join(account))


def _with_token(kubeconfig: Path, token: str, folder: Path) -> Path:
    config = yaml.safe_load(kubeconfig.read_text())
    for user in config["users"]:
        user["user"] = {"token": token}
    file = folder / "person"
    file.write_text(yaml.safe_dump(config))
    return file
