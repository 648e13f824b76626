"""A taskset whose images are built before any run: refused, built, repaired, run, and run again.

One story, told by one module fixture, so that each image is built once.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from argo_harbor.store.credentials import Credentials
from argo_harbor.store.s3 import S3Store
from tests.e2e.cluster.remote import Remote
from tests.e2e.cluster.suites import SMALL, ready_task
from tests.engines.suite import REWARD, write_task
from tests.support.program import Done

pytestmark = pytest.mark.cluster

SECRET = "build-images-test"
# One stream: of two, BuildKit passes on whichever it reads first.
BROKEN = "RUN --mount=type=secret,id=token cat /run/secrets/token >&2 && echo another thing >&2 && exit 3"
"""Prints the secret before it fails: a failing build is told with what it said last."""
RUN_FLAGS = ("--agent", "oracle", "--build-arg", "GREETING=hello {{workflow.name}}")


@dataclass
class Story:
    """What each command of it printed."""

    remote: Remote
    token: str
    refs: list[str] = field(default_factory=list)
    refused: Done | None = None
    first: Done | None = None
    second: Done | None = None
    third: Done | None = None
    seen: list[str] = field(default_factory=list)
    """Pods, Workflows and logs of builds, as they were right after those."""
    runs: list[Done] = field(default_factory=list)

    @property
    def flags(self) -> tuple[str, ...]:
        return (*RUN_FLAGS, "--build-secret", f"token={SECRET}/token")

    def build(self, *flags: str) -> Done:
        done = self.remote(
            "tasksets", "build-images", self.refs[-1], "--wait", *self.flags[2:], *flags, timeout=900
        )
        self._look()
        return done

    def _look(self) -> None:
        cluster = self.remote.cluster
        pods = cluster.get("pods", "--namespace", cluster.namespace, "--selector", "argo-harbor/builds")
        self.seen.append(json.dumps(pods))
        for pod in pods["items"]:
            name = pod["metadata"]["name"]
            self.seen.append(
                cluster.kubectl("logs", name, "--namespace", cluster.namespace, "--all-containers")
            )


def write_suite(folder: Path, nonce: str, *, broken: bool) -> Path:
    """Three tasks: one that mounts a secret and prints it, one that may fail at that, one without a build."""
    checks = "grep -q '^hello {{workflow.name}}$' /greeting && grep -q . /sum"
    write_task(
        folder,
        "argued",
        toml=f"[environment]\n{SMALL}",
        test=f"if {checks}; then echo 1 > {REWARD}; else echo 0 > {REWARD}; fi",
        dockerfile=(
            f"FROM debian:bookworm-slim\nARG GREETING=nobody\nLABEL nonce={nonce}\n"
            'RUN echo "$GREETING" > /greeting\n'
            "RUN --mount=type=secret,id=token,required=true "
            "cat /run/secrets/token && sha256sum /run/secrets/token > /sum\n"
        ),
    )
    failing = BROKEN if broken else "RUN echo repaired"
    write_task(
        folder,
        "broken",
        toml=f"[environment]\n{SMALL}",
        dockerfile=f"FROM debian:bookworm-slim\nLABEL nonce={nonce}\n{failing}\n",
    )
    ready_task(folder, "ready")
    return folder


@pytest.fixture(scope="module")
def secret(remote: Remote) -> Iterator[str]:
    token = f"token-{secrets.token_hex(12)}"
    namespace = remote.cluster.namespace
    remote.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": SECRET, "namespace": namespace},
            "stringData": {"token": f"{token}\n"},
        }
    )
    yield token
    remote.cluster.kubectl("delete", "secret", SECRET, "--namespace", namespace)


@pytest.fixture(scope="module")
def story(remote: Remote, secret: str, tmp_path_factory: pytest.TempPathFactory) -> Story:
    told = Story(remote, secret)
    nonce = secrets.token_hex(8)

    def create(name: str, *, broken: bool) -> None:
        suite = write_suite(tmp_path_factory.mktemp(name) / "images", nonce, broken=broken)
        done = remote("tasksets", "create", "--harbor-dir", suite)
        assert done.status == 0, done.stderr
        told.refs.append(done.stdout.strip().splitlines()[-1])

    create("first", broken=True)
    told.refused = remote("runs", "submit", "--taskset", told.refs[0], *told.flags, "--json")
    told.first = told.build()
    create("second", broken=False)
    told.second = told.build("--json")
    told.third = told.build("--json")
    for _ in range(2):
        told.runs.append(
            remote("runs", "submit", "--taskset", told.refs[1], *told.flags, "--wait", "--json", timeout=900)
        )
    return told


def images(done: Done | None) -> dict[str, dict[str, Any]]:
    assert done is not None
    found = done.json("build-images-document-1")["images"]
    return {image["tasks"][0]: image for image in found}


def test_a_run_of_unbuilt_images_is_refused_with_each_of_them(story: Story) -> None:
    refused = story.refused
    assert refused is not None
    assert refused.status == 3
    error = refused.error
    assert error["code"] == "image_not_built"
    assert {(item["task"], item["code"]) for item in error["items"]} == {
        ("argued", "image_not_built"),
        ("broken", "image_not_built"),
    }
    assert f"tasksets build-images '{story.refs[0]}'" in error["hint"]


def test_a_failing_build_is_told_with_its_step_and_last_lines(story: Story) -> None:
    first = story.first
    assert first is not None
    assert first.status == 1, first.stderr
    states = {line.split()[1]: line.split()[2] for line in first.stdout.splitlines()[2:4]}
    assert states == {"argued": "ready", "broken": "failed"}
    failure = first.stdout.partition("\nbroken: image_build_failed: ")[2]
    assert failure.startswith(f"Dockerfile:3: {BROKEN}\n")
    assert "  [secret token]\n  another thing\n" in failure
    assert "1 ready, 1 failed" in first.stdout
    assert "pending" in first.stderr


def test_after_the_repair_only_that_image_is_built(story: Story) -> None:
    second = images(story.second)
    assert {task: image["state"] for task, image in second.items()} == {"argued": "ready", "broken": "ready"}
    assert story.second is not None
    assert story.second.status == 0
    [name] = json.loads(story.second.stdout)["workflows"]
    nodes = story.remote.workflow(name)["status"]["nodes"].values()
    built = {node["displayName"].partition("(")[0] for node in nodes if node["templateName"] == "build"}
    assert built == {"build-broken"}
    assert second["broken"]["digest"].startswith("sha256:")
    assert list(second["argued"]["bases"]) == ["docker.io/library/debian:bookworm-slim"]


def test_when_all_is_ready_nothing_is_started(story: Story) -> None:
    assert story.third is not None
    document = story.third.json("build-images-document-1")
    assert (document["workflows"], document["settled"]) == ([], True)
    assert images(story.third)["argued"]["bases"] == images(story.second)["argued"]["bases"]


def test_the_taskset_runs_and_runs_again_without_a_build(story: Story) -> None:
    for done in story.runs:
        assert done.status == 0, done.stderr
        run_id = done.json("run-document-1")["run"]["id"]
        rewards = {task: line["trials"][0]["rewards"] for task, line in story.remote.tasks(run_id).items()}
        assert rewards == {task: {"reward": 1.0} for task in ("argued", "broken", "ready")}
        nodes = story.remote.workflow(run_id)["status"]["nodes"].values()
        assert not [node for node in nodes if node["templateName"].startswith("build")]
        assert "Published" not in done.stderr


def test_builds_are_no_runs(story: Story) -> None:
    assert story.second is not None
    [name] = json.loads(story.second.stdout)["workflows"]
    listed = story.remote("runs", "list", "--json").json("runs-document-1")["runs"]
    assert name not in [run["id"] for run in listed]
    assert story.remote("runs", "status", name, "--json").error["code"] == "unknown_run"


def test_the_secret_stands_nowhere(story: Story, tmp_path: Path) -> None:
    cluster = story.remote.cluster
    assert any("[secret token]" in text for text in story.seen)
    workflows = json.dumps(cluster.get("workflows", "--namespace", cluster.namespace))
    assert SECRET in workflows
    for text in (workflows, *story.seen, *(done.stdout + done.stderr for done in everything(story))):
        assert story.token not in text
    credentials = Credentials(cluster.store_access_key, cluster.store_secret_key)
    store = S3Store(
        cluster.store_endpoint, cluster.store_bucket, root=cluster.namespace, credentials=credentials
    )
    image = config_of(images(story.second)["argued"]["reference"])
    assert "GREETING=hello {{workflow.name}}" in json.dumps(image["history"])
    assert story.token not in json.dumps(image)
    looked = 0
    for folder in ("builds/", "images/", "plans/", "runs/", "tasksets/"):
        for entry in store.list(folder):
            if not entry.key.endswith((".png", ".gz")):
                assert story.token.encode() not in store.get(entry.key), entry.key
                looked += 1
    assert looked > 10


def config_of(reference: str) -> dict[str, Any]:
    """What an image in the cluster's registry, which speaks plain HTTP, says of itself."""
    name, _, tag = reference.rpartition(":")
    host, _, repository = name.partition("/")
    root = f"http://{host}/v2/{repository}"
    accepted = {"Accept": "application/vnd.oci.image.manifest.v1+json"}
    with urlopen(Request(f"{root}/manifests/{tag}", headers=accepted)) as answer:
        digest = json.load(answer)["config"]["digest"]
    with urlopen(f"{root}/blobs/{digest}") as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def everything(story: Story) -> Iterator[Done]:
    for done in (story.refused, story.first, story.second, story.third, *story.runs):
        assert done is not None
        yield done
