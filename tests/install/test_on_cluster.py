"""Installing into a real cluster: what its API server makes of the objects, and of the pods that follow."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import tomli
import yaml

from argo_harbor.cli.main import run
from argo_harbor.cluster.client import Cluster as Connection
from argo_harbor.cluster.connect import connect
from argo_harbor.install.rights import ACCOUNT_RULES
from argo_harbor.workflow.compile import compile_workflow
from tests.cluster.cluster import Cluster
from tests.support import plans
from tests.support.workflows import templates

pytestmark = pytest.mark.cluster

NAMESPACE = "install-test"
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate")
RESOURCES = (
    ("", "pods"),
    ("", "pods/exec"),
    ("", "pods/log"),
    ("", "secrets"),
    ("", "configmaps"),
    ("", "serviceaccounts"),
    ("", "serviceaccounts/token"),
    ("", "events"),
    ("", "nodes"),
    ("argoproj.io", "workflows"),
    ("argoproj.io", "workflowtemplates"),
    ("argoproj.io", "cronworkflows"),
    ("argoproj.io", "workflowtaskresults"),
    ("networking.k8s.io", "networkpolicies"),
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
)


@pytest.fixture
def platform_file(cluster: Cluster, tmp_path: Path) -> Path:
    file = tmp_path / "platform.toml"
    file.write_text(
        re.sub(r"(?m)^namespace = .*$", f'namespace = "{NAMESPACE}"', cluster.platform.read_text())
    )
    return file


@pytest.fixture
def installed(
    cluster: Cluster, cluster_environment: Mapping[str, str], platform_file: Path
) -> Iterator[Connection]:
    """An installation in a namespace of its own; the namespace is gone afterwards."""
    assert run(["install", "--apply", "--platform", str(platform_file)]) == 0
    connection = connect(namespace=NAMESPACE)
    yield connection
    assert run(["install", "--uninstall", "--yes", "--platform", str(platform_file)]) == 0
    wait_until(lambda: connection.find(f"/api/v1/namespaces/{NAMESPACE}") is None)


def wait_until(holds: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.2)


def test_applying_again_changes_nothing(
    installed: Connection, platform_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["install", "--diff", "--platform", str(platform_file)]) == 0
    capsys.readouterr()
    assert run(["install", "--apply", "--json", "--platform", str(platform_file)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {each["change"] for each in document["objects"]} == {"unchanged"}


def test_the_accounts_may_do_what_the_table_says_and_nothing_else(installed: Connection) -> None:
    questions = [
        (account, group, resource, verb)
        for account, (group, resource), verb in itertools.product(ACCOUNT_RULES, RESOURCES, VERBS)
    ]

    def allowed(question: tuple[str, str, str, str]) -> bool:
        account, group, resource, verb = question
        plural, _, part = resource.partition("/")
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": f"system:serviceaccount:{NAMESPACE}:{account}",
                "groups": ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}"],
                "resourceAttributes": {
                    "namespace": NAMESPACE,
                    "group": group,
                    "resource": plural,
                    "subresource": part,
                    "verb": verb,
                },
            },
        }
        answer = installed.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(answer["status"]["allowed"])

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(allowed, questions))
    granted = {question for question, yes in zip(questions, answers, strict=True) if yes}
    assert granted == {
        (account, rule.group, resource, verb)
        for account, rules in ACCOUNT_RULES.items()
        for rule in rules
        for resource in rule.resources
        for verb in rule.verbs
    }


def test_executors_get_a_token(installed: Connection) -> None:
    path = f"/api/v1/namespaces/{NAMESPACE}/secrets/argo-harbor-executor.service-account-token"
    wait_until(lambda: bool((installed.get(path).get("data") or {}).get("token")))


def test_a_pod_of_ours_breaks_the_baseline_in_two_places_only(
    installed: Connection, cluster: Cluster
) -> None:
    (document,) = compile_workflow(plans.example_plan("mixed"))
    pods = [pod_of(name, each) for name, each in templates(document).items() if "podSpecPatch" in each]
    command = [
        cluster.programs / "kubectl",
        "--namespace",
        NAMESPACE,
        "create",
        "--dry-run=server",
        "-f",
        "-",
    ]
    done = subprocess.run(
        [str(part) for part in command],
        input=json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(pods)
    found = set(re.findall(r'container "(\w+)" must not (?:include|set) "?([\w.=]+)', done.stderr))
    reasons = set(re.findall(r"(?::latest\": |\), )([a-z][a-zA-Z -]+) \(", done.stderr))
    assert reasons == {"non-default capabilities", "privileged"}
    assert {name for name, _ in found} == {"egress", "buildkitd"}


def pod_of(name: str, template: dict[str, Any]) -> dict[str, Any]:
    """The pod of a template, as far as Pod Security looks at it."""
    patch = yaml.safe_load(template["podSpecPatch"])

    def plain(container: dict[str, Any], fallback: str) -> dict[str, Any]:
        kept = ("name", "restartPolicy", "securityContext")
        return {
            "name": fallback,
            "image": "none.invalid/none",
            **{key: container[key] for key in kept if key in container},
        }

    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": re.sub(r"[^a-z0-9-]", "-", name)},
        "spec": {
            "containers": [plain(template["container"], "main")],
            "initContainers": [plain(each, "") for each in patch.get("initContainers", ())],
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        },
    }


def test_what_a_cluster_tells_about_itself(
    cluster: Cluster, cluster_environment: Mapping[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["install", "--discover"]) == 0
    said = tomli.loads(capsys.readouterr().out)["network"]
    ours = tomli.loads(cluster.platform.read_text())["network"]
    assert said["api_server"] == ours["api_server"]
    assert said["service_cidrs"] == ours["service_cidrs"]
    assert said["node_cidrs"] == ours["node_cidrs"]
    assert said["resolvers"]
