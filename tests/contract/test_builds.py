"""The build step against the real BuildKit and real registries, with the settings of the pod's daemon."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from argo_harbor.model.build import BuildInputs
from argo_harbor.model.build_plan import BuildPlan, PlannedImage
from argo_harbor.model.plan import ImagePlan
from argo_harbor.model.platform import Platform
from argo_harbor.registry.client import Registries
from argo_harbor.registry.reference import parse_image
from argo_harbor.runner.build import Arguments
from argo_harbor.store import layout
from argo_harbor.workflow.buildkit import daemon_config
from tests.cluster.programs import BUILDCTL, BUILDKITD, REGISTRY
from tests.support import gotools
from tests.support.image_builds import Built, make_build

pytestmark = pytest.mark.contract

USER, PASSWORD = "pusher", "secret"
HTPASSWD = f"{USER}:$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n"
"""The password by bcrypt, which Python has not."""
BASE = "FROM scratch\nCOPY . /\n"


@dataclass(frozen=True)
class Ground:
    """Running programs."""

    open: str
    """A registry for everybody, `host:port`."""
    closed: str
    """One that wants a login."""
    client: dict[str, str]


@pytest.fixture(scope="session")
def ground(_machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    folder = tmp_path_factory.mktemp("buildkit")
    try:
        programs = {tool.name: gotools.build(tool, say=print) for tool in (REGISTRY, BUILDKITD, BUILDCTL)}
    except gotools.ToolUnavailable as reason:
        pytest.skip(str(reason))
    with ExitStack() as stack:
        public, private = (
            stack.enter_context(_registry(programs["registry"], folder / name, private=name == "closed"))
            for name in ("open", "closed")
        )
        settings = Platform(insecure_registries=(public, private), base_image_mirror=f"{public}/hub")
        config = folder / "buildkitd.toml"
        config.write_text(daemon_config(settings))
        address = f"unix://{folder}/buildkitd.sock"
        command = [programs["buildkitd"], "--config", config, "--root", folder / "state", "--addr", address]
        stack.enter_context(_process([str(each) for each in command], folder / "buildkitd.log"))
        workers = [str(programs["buildctl"]), "--addr", address, "debug", "workers"]
        _until(lambda: subprocess.run(workers, capture_output=True).returncode == 0)
        yield Ground(public, private, {"program": str(programs["buildctl"]), "address": address})


@contextmanager
def _registry(program: Path, folder: Path, *, private: bool) -> Iterator[str]:
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    (folder / "htpasswd").write_text(HTPASSWD)
    auth = f"auth: {{htpasswd: {{realm: test, path: {folder}/htpasswd}}}}\n" if private else ""
    config = folder / "config.yml"
    config.write_text(
        f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {folder}/data}}}}\n"
        f"http: {{addr: {address}}}\n{auth}"
    )
    with _process([str(program), "serve", str(config)], folder / "log"):
        _until(lambda: _answers(address))
        yield address


@contextmanager
def _process(command: list[str], log: Path) -> Iterator[None]:
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(20)


def _answers(address: str) -> bool:
    host, _, port = address.partition(":")
    with socket.socket() as client:
        return client.connect_ex((host, int(port))) == 0


def _until(true: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            pytest.fail("a program did not start")
        time.sleep(0.05)


@pytest.fixture(scope="session")
def base(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A base image in the place of Docker Hub: its short name."""
    folder = tmp_path_factory.mktemp("base")
    made = make_build(folder, ground.open, prefix="hub/library", dockerfile=BASE)
    assert made.build(**ground.client) == 0
    return f"env:{made.image.key[:32]}"


def test_a_base_from_the_mirror_is_built_once(ground: Ground, base: str, tmp_path: Path) -> None:
    task = make_build(
        tmp_path, ground.open, dockerfile=f"# syntax=docker/dockerfile:1\nFROM {base}\nENV A=b\n"
    )
    assert task.build(**ground.client) == 0
    first = task.record
    asked = Registries(insecure=[ground.open]).digest(parse_image(task.image.reference))
    assert first.digest == asked
    assert list(first.bases) == [f"docker.io/library/{base}"]
    assert task.build(**ground.client) == 0
    assert (task.record.found, task.record.digest) == (True, asked)
    assert task.record.seconds < 2


def test_an_edited_dockerfile_finds_the_cache_of_the_version_before(
    ground: Ground, base: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"FROM {base}\nCOPY Dockerfile /kept\n"
    (tmp_path / "a").mkdir()
    make_build(tmp_path / "a", ground.open, dockerfile=text).build(**ground.client)
    capsys.readouterr()
    (tmp_path / "b").mkdir()
    edited = make_build(tmp_path / "b", ground.open, dockerfile=text + "ENV A=c\n")
    assert edited.build(**ground.client) == 0
    said = capsys.readouterr().out
    assert "importing cache manifest from" in said
    assert "ERROR" not in said


def test_arguments_decide_the_base_and_stand_in_the_image(ground: Ground, base: str, tmp_path: Path) -> None:
    task = make_build(
        tmp_path,
        ground.open,
        dockerfile="ARG BASE=nothing:1\nFROM ${BASE} AS first\nARG WHO\nENV A=$WHO\nFROM nothing:2\n",
        inputs=BuildInputs(args={"BASE": base, "WHO": "two words", "OTHER": "x"}),
    )
    assert task.image.bases == (base, "nothing:2")
    image = task.image.model_copy(update={"target": "first"})
    assert task.started(builds_of(task, image), **ground.client) == 0
    assert task.state.record is not None
    assert list(task.state.record.bases) == [f"docker.io/library/{base}"]
    assert "A=two words" in config_of(ground.open, task.tag)["config"]["Env"]


def builds_of(task: Built, image: ImagePlan) -> Arguments:
    """Publish a plan of builds with that image of the task alone."""
    part = task.plan.parts[0]
    plan = BuildPlan(
        taskset="suite#1",
        platform=task.plan.head.platform,
        denied=(),
        cap=1,
        build_seconds=2100,
        images=(PlannedImage(image=image, task=part.name, digest=part.digest, side="agent", tasks=()),),
    )
    task.store.put(layout.build_plan(plan.content_digest()), plan.canonical())
    return Arguments(0, builds=plan.content_digest())


def config_of(registry: str, tag: str) -> dict[str, Any]:
    """What an image says of itself."""
    repository, _, version = tag.partition(":")
    root = f"http://{registry}/v2/{repository}"
    accepted = {"Accept": "application/vnd.oci.image.manifest.v1+json"}
    with urlopen(Request(f"{root}/manifests/{version}", headers=accepted)) as answer:
        digest = json.load(answer)["config"]["digest"]
    with urlopen(f"{root}/blobs/{digest}") as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def test_a_failing_command_and_its_step(ground: Ground, base: str, tmp_path: Path) -> None:
    task = make_build(tmp_path, ground.open, dockerfile=f'FROM {base}\nRUN ["/no/such/program"]\n')
    assert task.build(**ground.client) == 1
    assert task.record.code == "image_build_failed"
    assert task.record.step == 'Dockerfile:2: RUN ["/no/such/program"]'
    assert "/no/such/program" in task.record.message


def test_a_base_that_the_mirror_has_not(ground: Ground, tmp_path: Path) -> None:
    reference = f"{ground.open}/hub/library/nothing:1"
    task = make_build(tmp_path, ground.open, dockerfile=f"FROM {reference}\n")
    assert task.build(**ground.client) == 1
    assert (task.record.code, task.record.image) == ("base_image_not_found", reference)


def test_a_registry_that_wants_a_login(ground: Ground, base: str, tmp_path: Path) -> None:
    task = make_build(
        tmp_path,
        ground.closed,
        dockerfile=f"FROM {base}\n",
        secrets={"registry": "push"},
        insecure_registries=[ground.open, ground.closed],
    )
    assert task.build(**ground.client) == 1
    assert (task.record.code, task.record.registry) == ("registry_unauthorized", ground.closed)
    assert "Secret push is not in namespace" in task.record.message
    task.secret("push", ground.closed, USER, "wrong")
    assert task.build(**ground.client) == 1
    assert (task.record.code, task.record.secret) == ("registry_unauthorized", "push")
    task.secret("push", ground.closed, USER, PASSWORD)
    assert task.build(**ground.client) == 0
    assert task.record.digest


def test_a_base_in_a_registry_that_wants_a_login(ground: Ground, base: str, tmp_path: Path) -> None:
    both = {"insecure_registries": [ground.open, ground.closed]}
    (tmp_path / "owner").mkdir()
    owner = make_build(
        tmp_path / "owner", ground.closed, dockerfile=f"FROM {base}\n", secrets={"registry": "push"}, **both
    )
    owner.secret("push", ground.closed, USER, PASSWORD)
    assert owner.build(**ground.client) == 0
    (tmp_path / "user").mkdir()
    user = make_build(
        tmp_path / "user",
        ground.open,
        dockerfile=f"FROM {owner.image.reference}\nENV A=d\n",
        secrets={"image_pull": ["pull"]},
        **both,
    )
    assert user.build(**ground.client) == 1
    assert (user.record.code, user.record.image) == ("registry_unauthorized", owner.image.reference)
    user.secret("pull", ground.closed, USER, PASSWORD)
    assert user.build(**ground.client) == 0
