"""What can be wrong with the image of one task: only that task is affected, and everybody is told why.

Three runs, all under way at once: faults of images beside sound tasks; logins that the private registry does
not take; and the same with logins that it does.
"""

from __future__ import annotations

import base64
import json
import secrets
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from tests.cluster.cluster import Cluster
from tests.e2e.cluster.remote import Remote
from tests.e2e.cluster.suites import built_task, ready_task
from tests.engines.suite import REWARD

pytestmark = pytest.mark.cluster

# Neither text stands in the task itself, which would only find its own.
FIND_SECRET = f"""
plain=only-for; plain=$plain-tests
coded=$(printf 'harbor:%s' "$plain" | base64)
if env | grep -qF -e "$plain" -e "$coded"; then echo 0 > {REWARD}; exit; fi
for file in /proc/[0-9]*/environ; do
  if grep -qF -e "$plain" -e "$coded" "$file" 2> /dev/null; then echo 0 > {REWARD}; exit; fi
done
if grep -rIqF --exclude-dir=proc --exclude-dir=sys -e "$plain" -e "$coded" / 2> /dev/null; then
  echo 0 > {REWARD}; exit
fi
echo 1 > {REWARD}
"""


@dataclass(frozen=True)
class Login:
    """A Secret of the namespace for the private registry."""

    name: str
    password: str

    def document(self, cluster: Cluster) -> dict[str, Any]:
        auth = base64.b64encode(f"{cluster.private_user}:{self.password}".encode()).decode()
        config = json.dumps({"auths": {cluster.private_registry: {"auth": auth}}})
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self.name, "namespace": cluster.namespace},
            "type": "kubernetes.io/dockerconfigjson",
            "stringData": {".dockerconfigjson": config},
        }


@dataclass(frozen=True)
class Faults:
    images: str
    refused: str
    taken: str
    wrong: Login
    right: Login


@pytest.fixture(scope="module")
def faults(remote: Remote, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faults]:
    cluster = remote.cluster
    folder = tmp_path_factory.mktemp("faults")
    # New each time: what one run has pulled or pushed would be there for the next without a login.
    unique = secrets.token_hex(4)
    wrong = Login(f"wrong-{unique}", "not-the-password")
    right = Login(f"right-{unique}", cluster.private_password)
    cluster.create(wrong.document(cluster), right.document(cluster))
    private = f"{cluster.private_registry}/faults-{unique}"
    images = image_faults(folder / "images", cluster, private)
    refused = folder / "refused"
    ready_task(refused, "pulled", image=f"{private}/pulled:1")
    built_task(refused, "pushed", run=f"echo {unique} > /app/refused")
    taken = folder / "taken"
    built_task(taken, "sealed", run=f"echo {unique} > /app/taken", test=FIND_SECRET)
    runs = (
        remote.submit(images),
        remote.submit(refused, "--platform", platform(cluster, folder / "wrong.toml", private, wrong)),
        remote.submit(taken, "--platform", platform(cluster, folder / "right.toml", private, right)),
    )
    for run_id in runs:
        remote.ended(run_id, timeout=400)
    yield Faults(*runs, wrong, right)
    for run_id in runs:
        remote.delete(run_id)
    cluster.kubectl("delete", "secret", wrong.name, right.name, "--namespace", cluster.namespace)


def image_faults(suite: Path, cluster: Cluster, private: str) -> Path:
    ready_task(suite, "sound")
    ready_task(suite, "unsolved", test=f"echo 0 > {REWARD}")
    built_task(suite, "unbuilt", run="echo first && echo 'the last words' >&2 && exit 7")
    ready_task(suite, "absent", image=f"{cluster.registry}/nobody/made-this:1")
    ready_task(suite, "private", image=f"{private}/nobody:1")
    return suite


def platform(cluster: Cluster, path: Path, registry: str, login: Login) -> Path:
    """The cluster's own platform file, with the private registry for images that are built."""
    document = tomllib.loads(cluster.platform.read_text())
    document["registry"] = registry
    document["secrets"] = {"image_pull": [login.name], "registry": login.name}
    path.write_text(tomli_w.dumps(document))
    return path


def causes(remote: Remote, run_id: str, folder: Path) -> dict[str, tuple[str, str]]:
    """Code and text of each task's missing attempt, as the bundle names them."""
    done = remote("runs", "download", run_id, "-o", folder, "--json")
    assert done.status == 0, done.stderr
    path = Path(done.json("download-document-1")["path"])
    facts = json.loads((path / "metadata.json").read_text())["target"]["config"]["argo_harbor"]
    return {
        task["task"].rpartition("/")[2]: (task["attempts"][0]["code"], task["attempts"][0]["cause"])
        for task in facts["missing"]
    }


def seconds(remote: Remote, run_id: str) -> float:
    """From the Workflow's creation to its end."""
    found = remote.workflow(run_id)
    ended = datetime.fromisoformat(found["status"]["finishedAt"])
    return (ended - datetime.fromisoformat(found["metadata"]["creationTimestamp"])).total_seconds()


def test_only_the_tasks_with_a_fault_are_affected(faults: Faults, remote: Remote) -> None:
    tasks = remote.tasks(faults.images)
    assert {name: task["phase"] for name, task in tasks.items()} == {
        "sound": "succeeded",
        "unsolved": "succeeded",
        "unbuilt": "failed",
        "absent": "failed",
        "private": "failed",
    }
    assert {name: task["trials"][0]["rewards"] for name, task in tasks.items()} == {
        "sound": {"reward": 1.0},
        "unsolved": {"reward": 0.0},
        "unbuilt": None,
        "absent": None,
        "private": None,
    }
    status = remote("runs", "status", faults.images, "--json").json("run-document-1")["run"]
    assert (status["phase"], status["result_state"]) == ("completed", "ready")


def test_the_bundle_and_the_list_of_tasks_name_each_cause(
    faults: Faults, remote: Remote, tmp_path: Path
) -> None:
    cluster = remote.cluster
    named = causes(remote, faults.images, tmp_path)
    assert {task: code for task, (code, _) in named.items()} == {
        "unbuilt": "image_build_failed",
        "absent": "image_pull_failed",
        "private": "registry_unauthorized",
    }
    step = "Dockerfile:3: RUN echo first && echo 'the last words' >&2 && exit 7: "
    assert named["unbuilt"][1].startswith(step)
    assert "the last words" in named["unbuilt"][1].removeprefix(step).splitlines()
    assert f"{cluster.registry}/nobody/made-this:1" in named["absent"][1]
    assert named["private"][1].startswith(f"{cluster.private_registry} refuses a pull of ")
    assert "without a login ([secrets] image_pull is empty)" in named["private"][1]
    tasks = remote.tasks(faults.images)
    for task, (code, _) in named.items():
        assert code in json.dumps(tasks[task]), task
    shown = remote("runs", "results", faults.images)
    for code, _ in named.values():
        assert code in shown.stdout


def test_a_login_that_is_not_taken_is_named_with_its_secret(
    faults: Faults, remote: Remote, tmp_path: Path
) -> None:
    private = remote.cluster.private_registry
    named = causes(remote, faults.refused, tmp_path)
    for task, act in (("pulled", "a pull of"), ("pushed", "a pull of")):
        code, cause = named[task]
        assert code == "registry_unauthorized"
        assert cause.partition("\n")[0].startswith(
            (f"{private} refuses {act} {private}/", "looking for the image")
        )
        assert f"Secret {faults.wrong.name}" in cause


def test_no_fault_holds_a_run_up(faults: Faults, remote: Remote) -> None:
    """Not even for the 900 seconds that a pod has to start: it takes one minute where nothing else runs."""
    assert seconds(remote, faults.images) < 600
    assert seconds(remote, faults.refused) < 600


def test_with_the_right_secrets_it_works_and_the_sandbox_sees_none_of_them(
    faults: Faults, remote: Remote
) -> None:
    assert remote.trial(faults.taken, "sealed")["rewards"] == {"reward": 1.0}
    spec = json.dumps(remote.workflow(faults.taken)["spec"])
    assert faults.right.name in spec
    assert faults.right.password not in spec
