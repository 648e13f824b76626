"""The cluster is what it claims to be: a real Kubernetes with a real Argo, whose fences hold."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from minio import Minio

from tests.cluster.cluster import Cluster
from tests.cluster.errors import ClusterError

pytestmark = pytest.mark.cluster

# PID 1 gets no default action for SIGTERM: without a handler every stop costs the grace period.
SLEEP = "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done"
SECONDS = 120.0
TIMEOUT = f"--timeout={SECONDS:.0f}s"
REFUSED = ("ErrImagePull", "ImagePullBackOff")


@pytest.fixture(scope="module")
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace for this module's pods."""
    name = "cluster-test"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    wait(lambda: succeeds(cluster, "get", "serviceaccount", "default", "--namespace", name))
    yield name
    cluster.kubectl("delete", "namespace", name, TIMEOUT)


def pod(cluster: Cluster, namespace: str, name: str, script: str, **spec: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": f"{cluster.registry}/mirror/library/busybox:latest",
        "command": ["sh", "-c", script],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def connect(host: str, port: str) -> str:
    """A shell command that succeeds when the port can be connected to."""
    return f"nc -w 2 {host} {port} < /dev/null"


def wait(condition: Callable[[], bool], *, seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s"
        time.sleep(0.2)


def succeeds(cluster: Cluster, *arguments: str) -> bool:
    try:
        cluster.kubectl(*arguments)
    except ClusterError:
        return False
    return True


def run_to_end(cluster: Cluster, namespace: str, name: str, script: str) -> str:
    """The output of a pod that must succeed."""
    cluster.create(pod(cluster, namespace, name, script))
    done = "--for=jsonpath={.status.phase}=Succeeded"
    cluster.kubectl("wait", done, f"pod/{name}", "--namespace", namespace, TIMEOUT)
    return cluster.kubectl("logs", name, "--namespace", namespace)


def waiting_reason(cluster: Cluster, namespace: str, name: str) -> str:
    statuses = cluster.get("pod", name, "--namespace", namespace)["status"].get("containerStatuses", [])
    return str(statuses[0]["state"].get("waiting", {}).get("reason", "")) if statuses else ""


def test_node_is_ready(cluster: Cluster) -> None:
    (node,) = cluster.get("nodes")["items"]
    conditions = {each["type"]: each["status"] for each in node["status"]["conditions"]}
    assert conditions["Ready"] == "True"
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.34.4"


def test_pod_runs(cluster: Cluster, namespace: str) -> None:
    assert run_to_end(cluster, namespace, "hello", "echo hello") == "hello\n"


def test_names_of_services_resolve(cluster: Cluster, namespace: str) -> None:
    answer = run_to_end(cluster, namespace, "resolve", "nslookup kubernetes.default.svc.cluster.local")
    assert "10.96.0.1" in answer


def test_services_are_reached_by_name(cluster: Cluster, namespace: str) -> None:
    # The short name needs the search domains of the pod's own resolv.conf, the address kube-proxy.
    run_to_end(cluster, namespace, "reach", connect("kubernetes.default", "443"))


def test_store_and_registry_are_reached_from_pods(cluster: Cluster, namespace: str) -> None:
    ports = [cluster.store_endpoint.removeprefix("http://"), cluster.registry, cluster.private_registry]
    script = " && ".join(connect(*place.split(":")) for place in ports)
    run_to_end(cluster, namespace, "ports", script)


def test_network_policy_is_enforced(cluster: Cluster, namespace: str) -> None:
    cluster.create(
        pod(cluster, namespace, "server", "trap 'exit 0' TERM; httpd -f -p 8080 & wait"),
        pod(cluster, namespace, "client", SLEEP),
    )
    for name in ("server", "client"):
        ready = ["wait", "--for=condition=Ready", f"pod/{name}", "--namespace", namespace, TIMEOUT]
        cluster.kubectl(*ready)
    address = cluster.get("pod", "server", "--namespace", namespace)["status"]["podIP"]

    def connects() -> bool:
        command = ["sh", "-c", connect(address, "8080")]
        return succeeds(cluster, "exec", "client", "--namespace", namespace, "--", *command)

    wait(connects)
    cluster.create(
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "closed", "namespace": namespace},
            "spec": {"podSelector": {"matchLabels": {"app": "client"}}, "policyTypes": ["Egress"]},
        }
    )
    wait(lambda: not connects())
    cluster.kubectl("delete", "networkpolicy", "closed", "--namespace", namespace)
    wait(connects)


@pytest.mark.parametrize(
    ("name", "image"),
    [("absent-here", "{registry}/no/such:image"), ("absent-outside", "docker.io/library/no-such:latest")],
)
def test_missing_image_fails_at_once(name: str, image: str, cluster: Cluster, namespace: str) -> None:
    document = pod(cluster, namespace, name, "true")
    document["spec"]["containers"][0]["image"] = image.format(registry=cluster.registry)
    cluster.create(document)
    wait(lambda: waiting_reason(cluster, namespace, name) in REFUSED)


def test_private_registry_asks_for_a_password(cluster: Cluster, namespace: str) -> None:
    image = f"{cluster.private_registry}/busybox:latest"
    source = f"{cluster.registry}/mirror/library/busybox:latest"
    copy = ["skopeo", "copy", "--src-tls-verify=false", "--dest-tls-verify=false"]
    login = f"{cluster.private_user}:{cluster.private_password}"
    places = [f"docker://{source}", f"docker://{image}"]
    refused = subprocess.run([*copy, *places], capture_output=True, text=True)
    assert refused.returncode
    subprocess.run([*copy, f"--dest-creds={login}", *places], check=True, capture_output=True)

    without = pod(cluster, namespace, "without-secret", "true")
    without["spec"]["containers"][0]["image"] = image
    cluster.kubectl(
        *("create", "secret", "docker-registry", "login", "--namespace", namespace),
        f"--docker-server={cluster.private_registry}",
        f"--docker-username={cluster.private_user}",
        f"--docker-password={cluster.private_password}",
    )
    with_secret = pod(cluster, namespace, "with-secret", "true", imagePullSecrets=[{"name": "login"}])
    with_secret["spec"]["containers"][0]["image"] = image
    cluster.create(without, with_secret)
    wait(lambda: cluster.get("pod", "with-secret", "-n", namespace)["status"]["phase"] == "Succeeded")
    assert waiting_reason(cluster, namespace, "without-secret") in REFUSED


def test_workflow_runs_and_keeps_its_artifact(cluster: Cluster) -> None:
    workflow = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"generateName": "cluster-test-", "namespace": cluster.namespace},
        "spec": {
            "entrypoint": "main",
            "serviceAccountName": "argo-harbor-trial",
            "automountServiceAccountToken": False,
            "executor": {"serviceAccountName": "argo-harbor-executor"},
            "artifactRepositoryRef": {"configMap": "argo-harbor-artifacts", "key": "store"},
            "templates": [
                {
                    "name": "main",
                    "container": {
                        "image": f"{cluster.registry}/mirror/library/busybox:latest",
                        "command": ["sh", "-c", "echo from a workflow > /tmp/out.txt"],
                    },
                    "outputs": {"artifacts": [{"name": "out", "path": "/tmp/out.txt"}]},
                }
            ],
        },
    }
    name = cluster.create(workflow)
    try:
        wait(lambda: cluster.get(name).get("status", {}).get("phase") in ("Succeeded", "Failed", "Error"))
        status = cluster.get(name)["status"]
        assert status["phase"] == "Succeeded", status.get("message", status)
        (node,) = status["nodes"].values()
        key = node["outputs"]["artifacts"][0]["s3"]["key"]
        assert key.startswith("argo/")
        store = Minio(
            cluster.store_endpoint.removeprefix("http://"),
            access_key=cluster.store_access_key,
            secret_key=cluster.store_secret_key,
            secure=False,
        )
        assert store.stat_object(cluster.store_bucket, key).size
    finally:
        cluster.kubectl("delete", name)
