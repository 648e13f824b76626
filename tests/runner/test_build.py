"""The build command: ask, build, record. BuildKit's client is a script here; the registry is in memory."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from argo_harbor.errors import PlatformError
from argo_harbor.model.base import sha256_hex
from argo_harbor.model.build import BuildInputs
from argo_harbor.model.build_plan import BuildPlan, PlannedImage
from argo_harbor.model.plan import ImagePlan
from argo_harbor.runner.build import Arguments, open_build, parse
from argo_harbor.runner.build_context import find_dockerfile, wants_frontend
from argo_harbor.runner.build_image import ImageBuild
from argo_harbor.runner.exits import EXIT_AGAIN, Again
from argo_harbor.store import layout
from tests.runner.test_build_failure import RECORDINGS
from tests.support.image_builds import RUN, Built, make_build
from tests.support.pods import make_pod
from tests.support.registry_double import Registry

DIGEST = f"sha256:{'ab' * 32}"
WRITE_DIGEST = (
    """while [ $# -gt 0 ]; do [ "$1" = --metadata-file ] && file=$2; shift; done
printf '{"containerimage.digest": "%s"}' """
    + DIGEST
    + ' > "$file"'
)


@dataclass
class World(Built):
    """With a registry in memory and a script for a client."""

    registry: Registry = field(default_factory=Registry)

    def client(self, *lines: str, recording: str = "", status: int = 0) -> None:
        """What the client does: shell lines, then a recording of the real one's output."""
        said = self.root / "said"
        if recording:
            recorded = RECORDINGS[recording]
            text = "".join(json.dumps(event) + "\n" for event in recorded["events"]) + recorded["said"]
            said.write_text(text.replace(recorded["reference"], self.image.reference))
            lines, status = (*lines, f"cat {said} >&2"), recorded["status"]
        client = self.root / "buildctl"
        client.write_text(
            "\n".join(["#!/bin/sh", f'echo "$@" > {self.root}/called', *lines, f"exit {status}"])
        )
        client.chmod(0o755)

    def run(self) -> int:
        return self.build(program=str(self.root / "buildctl"))

    @property
    def called(self) -> str:
        return (self.root / "called").read_text()


def make_world(root: Path, registry: Registry, address: str, **settings: Any) -> World:
    made = make_build(root, address, **settings)
    return World(made.root, made.plan, made.store, registry=registry)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    registry = Registry()
    with registry.running() as address:
        yield make_world(tmp_path, registry, address)


def test_an_image_that_is_there_is_not_built(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.registry.manifests[world.tag] = DIGEST
    world.client("exit 9")
    assert world.run() == 0
    assert (world.record.ok, world.record.found, world.record.digest) == (True, True, DIGEST)
    assert not (world.root / "called").exists()
    assert "it is there" in capsys.readouterr().out


def test_a_build_is_shown_pushed_and_recorded(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.client(f"cat {world.root}/said >&2", WRITE_DIGEST)
    recorded = RECORDINGS["built"]
    (world.root / "said").write_text("".join(json.dumps(event) + "\n" for event in recorded["events"]))
    assert world.run() == 0
    record = world.record
    assert (record.ok, record.found, record.digest) == (True, False, DIGEST)
    assert list(record.bases) == ["docker.io/library/debian:bookworm-slim"]
    assert record.reference == world.image.reference
    assert f"name={world.image.reference},push=true,registry.insecure=true" in world.called
    assert "--import-cache" not in world.called
    assert "exporting to image" in capsys.readouterr().out


def test_the_cache_of_an_earlier_version_is_used(world: World) -> None:
    world.client(WRITE_DIGEST)
    world.run()
    cache = world.called.partition("--export-cache type=registry,ref=")[2].partition(",")[0]
    assert cache.startswith(f"{world.image.reference.rpartition(':')[0]}:cache-")
    world.registry.manifests[cache.partition("/")[2]] = DIGEST
    assert world.run() == 0
    assert f"--import-cache type=registry,ref={cache}," in world.called


def test_the_client_gets_the_context_and_every_login(tmp_path: Path) -> None:
    registry = Registry()
    with registry.running() as address:
        world = make_world(
            tmp_path, registry, address, secrets={"registry": "push", "image_pull": ["pull", "push"]}
        )
        world.secret("push", address)
        world.secret("pull", "ghcr.io")
        world.client(
            f'cp "$DOCKER_CONFIG/config.json" {tmp_path}/logins',
            'for a in "$@"; do case "$a" in context=*) ls "${a#context=}" > '
            + f"{tmp_path}/context;; esac; done",
            WRITE_DIGEST,
        )
        assert world.run() == 0
    assert set(json.loads((tmp_path / "logins").read_text())["auths"]) == {address, "ghcr.io"}
    assert "Dockerfile" in (tmp_path / "context").read_text().split()


def test_a_failing_instruction_is_for_good(world: World) -> None:
    world.client(recording="run_failed")
    assert world.run() == 1
    record = world.record
    assert (record.ok, record.code) == (False, "image_build_failed")
    assert record.step.startswith("Dockerfile:2: RUN echo one;")
    assert record.message.startswith("one\ntwo\n")
    assert record.digest == ""


def test_a_base_image_that_is_not_there_is_named(world: World) -> None:
    world.client(recording="base_missing")
    assert world.run() == 1
    assert world.record.code == "base_image_not_found"
    assert world.record.message.startswith("docker.io has no docker.io/library/debian:nope")


def test_a_network_fault_asks_for_another_try(world: World) -> None:
    world.client(recording="pull_unreachable")
    assert world.run() == EXIT_AGAIN
    assert (world.record.ok, world.record.code) == (False, "registry_unreachable")


def test_a_refused_pull_names_registry_image_and_secret(tmp_path: Path) -> None:
    registry = Registry()
    with registry.running() as address:
        world = make_world(tmp_path, registry, address, secrets={"image_pull": ["pull"]})
        world.secret("pull", "127.0.0.1:15001")
        world.client(recording="pull_refused")
        assert world.run() == 1
    record = world.record
    assert (record.code, record.secret) == ("registry_unauthorized", "pull")
    assert record.message.startswith(
        "127.0.0.1:15001 refuses a pull of 127.0.0.1:15001/ah/env:abc with the login of Secret pull\n"
    )


def test_a_refused_push_without_its_secret_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = Registry()
    with registry.running() as address:
        world = make_world(tmp_path, registry, address, secrets={"registry": "push"})
        world.client(recording="push_refused")
        assert world.run() == 1
    record = world.record
    assert (record.code, record.secret, record.registry) == ("registry_unauthorized", "", address)
    assert "without a login (Secret push is not in namespace argo-harbor" in record.message
    assert "Secret push is not in namespace" in capsys.readouterr().out


def test_a_secret_that_holds_no_logins_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    registry = Registry()
    with registry.running() as address:
        world = make_world(tmp_path, registry, address, secrets={"registry": "push"})
        (tmp_path / "secrets" / "push").mkdir(parents=True)
        (tmp_path / "secrets" / "push" / "config.json").write_text("{}")
        world.client(WRITE_DIGEST)
        assert world.run() == 0
    assert 'Secret push has no "auths"' in capsys.readouterr().out


@pytest.mark.parametrize(("status", "code", "exit_"), [(503, "registry_unreachable", EXIT_AGAIN)])
def test_a_registry_that_falters_before_the_build(world: World, status: int, code: str, exit_: int) -> None:
    world.registry.status = status
    assert world.run() == exit_
    assert (world.record.code, world.record.image) == (code, world.image.reference)


def test_a_registry_that_lets_nobody_look(world: World) -> None:
    world.registry.login = ("robot", "pw")
    assert world.run() == 1
    assert world.record.code == "registry_unauthorized"
    assert "refuses a pull of" in world.record.message


def test_a_build_that_is_told_to_stop_leaves_no_record(world: World) -> None:
    world.interrupt.asked = True
    world.client("trap 'exit 1' TERM; while :; do sleep 0.05; done")
    with pytest.raises(Again, match="told to stop"):
        world.run()
    assert list(world.store.list(layout.builds(RUN))) == []


def test_a_build_that_takes_too_long_is_for_good(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImageBuild, "_seconds", 0.3)
    world.client("trap 'exit 1' TERM; while :; do sleep 0.05; done")
    assert world.run() == 1
    assert world.record.message == "the build did not end within 0 s"


def test_a_client_that_is_not_there_asks_for_another_try(world: World) -> None:
    with pytest.raises(Again, match="cannot be started"):
        world.run()


def test_an_archive_that_is_gone_or_broken(world: World) -> None:
    archive = world.store.path(layout.task_archive(world.plan.parts[0].digest))
    archive.chmod(0o644)
    archive.write_bytes(b"broken")
    assert world.run() == 1
    assert "the archive is broken" in world.record.message
    archive.unlink()
    with pytest.raises(PlatformError) as error:
        world.run()
    assert error.value.code == "plan_unreadable"


def test_an_archive_without_the_dockerfile(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = world.image.model_copy(update={"context": "nowhere"})
    images = world.plan.parts[0].images.model_copy(update={"agent": nowhere})
    part = world.plan.parts[0].model_copy(update={"images": images})
    monkeypatch.setattr("argo_harbor.runner.build_job.read_part", lambda *_: part)
    assert world.run() == 1
    assert world.record.message == "the task's archive has no nowhere/Dockerfile"


def test_a_side_without_an_image_is_a_fault_of_the_caller(world: World) -> None:
    given = Arguments(0, plan=world.plan.digest, run=RUN, side="verifier")
    with pytest.raises(ValueError, match="no image to build"):
        open_build(given, make_pod(world.root), world.interrupt)


@pytest.mark.parametrize(
    ("first", "own"),
    [
        ("# syntax=docker/dockerfile:1", False),
        ("# syntax = docker.io/docker/dockerfile:1.7", False),
        ("#syntax=docker/dockerfile:1-labs", True),
        ("# escape=\\\n# syntax=acme/frontend:2", True),
        ("FROM debian", False),
        ("FROM debian\n# syntax=acme/frontend:2", False),
    ],
)
def test_only_a_foreign_frontend_is_fetched(tmp_path: Path, first: str, own: bool) -> None:
    (tmp_path / "Dockerfile").write_text(f"{first}\nRUN true\n")
    assert wants_frontend(tmp_path / "Dockerfile") is own


def test_the_command_line() -> None:
    line = "--plan ab --run run-1 --task 3 --side verifier --try 1"
    assert parse(line.split()) == Arguments(1, plan="ab", run="run-1", index=3, side="verifier")
    assert parse(["--builds", "cd", "--image", "7", "--try", "0"]) == Arguments(0, builds="cd", image=7)
    for broken in ("--plan ab", "--plan ab --run run-1 --try 0", "--builds ab --try 0"):
        with pytest.raises(SystemExit):
            parse(broken.split())


def builds_of(world: World, **changes: Any) -> Arguments:
    """Publish a plan of builds only with the world's image, and name that image."""
    part = world.plan.parts[0]
    image = world.image.model_copy(update=changes)
    planned = PlannedImage(image=image, task=part.name, digest=part.digest, side="agent", tasks=(part.name,))
    plan = BuildPlan(
        taskset=world.plan.head.taskset.ref,
        platform=world.plan.head.platform,
        denied=(),
        cap=1,
        build_seconds=2100,
        images=(planned,),
    )
    world.store.put(layout.build_plan(plan.content_digest()), plan.canonical())
    return Arguments(0, builds=plan.content_digest())


def test_an_image_of_a_build_plan_is_built_without_a_run(world: World) -> None:
    world.client(WRITE_DIGEST)
    assert world.started(builds_of(world), program=str(world.root / "buildctl")) == 0
    assert world.state.word == "ready"
    assert world.state.record is not None
    assert world.state.record.digest == DIGEST
    assert list(world.store.list(layout.runs())) == []


def test_a_build_plan_that_is_not_there_or_has_no_such_image(world: World) -> None:
    given = builds_of(world)
    with pytest.raises(PlatformError, match="no image 7"):
        world.started(replace(given, image=7))
    with pytest.raises(PlatformError, match="is not in"):
        world.started(Arguments(0, builds="ab" * 32))
    world.store.put(layout.build_plan("ab" * 32), b"{}")
    with pytest.raises(PlatformError, match="not what its digest says"):
        world.started(Arguments(0, builds="ab" * 32))
    broken = sha256_hex(b"{}")
    world.store.put(layout.build_plan(broken), b"{}")
    with pytest.raises(PlatformError, match="no builds-1 document"):
        world.started(Arguments(0, builds=broken))


def test_every_build_tells_the_state_of_its_image(world: World) -> None:
    assert world.state.word == "missing"
    world.client(recording="run_failed")
    world.run()
    assert (world.state.word, world.state.record) == ("failed", world.record)
    world.client(WRITE_DIGEST)
    world.run()
    assert world.state.word == "ready"


def test_base_images_are_those_of_the_build_that_made_the_image(world: World) -> None:
    world.client(f"cat {world.root}/said >&2", WRITE_DIGEST)
    events = RECORDINGS["built"]["events"]
    (world.root / "said").write_text("".join(json.dumps(event) + "\n" for event in events))
    assert world.run() == 0
    built = world.record.bases
    world.registry.manifests[world.tag] = DIGEST
    assert world.run() == 0
    assert (world.record.found, world.record.bases) == (True, built)
    world.registry.manifests[world.tag] = f"sha256:{'cd' * 32}"
    assert world.run() == 0
    assert world.record.bases == {}


ARGUED = "FROM debian:bookworm-slim\nARG WHO=x\nARG TAG\nRUN echo $WHO\n"


def test_arguments_stage_and_dockerfile_reach_the_client(tmp_path: Path) -> None:
    registry = Registry()
    with registry.running() as address:
        inputs = BuildInputs(args={"WHO": "two words, {{=1}}", "OTHER": "z"})
        world = make_world(tmp_path, registry, address, dockerfile=ARGUED, inputs=inputs)
        world.client(WRITE_DIGEST)
        assert world.run() == 0
        assert "--opt build-arg:WHO=two words, {{=1}} " in world.called
        assert "OTHER" not in world.called
        assert "filename=" not in world.called
        given = builds_of(world, dockerfile="seed.txt", target="dev")
        assert world.started(given, program=str(world.root / "buildctl")) == 0
        assert "--opt filename=seed.txt --opt target=dev" in world.called
        given = builds_of(world, dockerfile="../../../task.toml")
        assert world.started(given, program=str(world.root / "buildctl")) == 1


SECRET = "FROM debian:bookworm-slim\nRUN --mount=type=secret,id=token,required=true cat /run/secrets/token\n"


@pytest.fixture
def secretive(tmp_path: Path) -> Iterator[World]:
    """A build that mounts a secret."""
    registry = Registry()
    with registry.running() as address:
        inputs = BuildInputs(secrets={"token": "builds/key"})
        yield make_world(tmp_path, registry, address, dockerfile=SECRET, inputs=inputs)


def test_a_secret_is_a_file_of_the_client_and_printed_nowhere(
    secretive: World, capsys: pytest.CaptureFixture[str]
) -> None:
    secretive.build_secret("token", "first-half\nsecond-half\n")
    vertex = {"digest": "a", "name": "[2/2] RUN cat", "started": "2026-01-01T00:00:00Z"}
    said = [
        {"vertexes": [vertex]},
        {"logs": [{"vertex": "a", "data": base64.b64encode(b"it is first-").decode()}]},
        {"logs": [{"vertex": "a", "data": base64.b64encode(b"half\nsecond-half\n").decode()}]},
        {"vertexes": [{**vertex, "completed": "2026-01-01T00:00:01Z", "error": "no second-half"}]},
    ]
    (secretive.root / "said").write_text("".join(json.dumps(event) + "\n" for event in said))
    secretive.client(f"cat {secretive.root}/said >&2", "echo error: first-half >&2", status=1)
    assert secretive.run() == 1
    file = secretive.root / "build-secrets" / "token" / "value"
    assert f"--secret id=token,src={file}" in secretive.called
    shown = capsys.readouterr().out
    assert "it is [secret token]" in shown
    record = secretive.record
    assert record.message == "it is [secret token]\nno [secret token]"
    for text in (shown, record.canonical().decode()):
        assert "first-half" not in text
        assert "second-half" not in text


def test_a_secret_that_is_not_there_is_told_before_anything_is_built(secretive: World) -> None:
    secretive.client(WRITE_DIGEST)
    assert secretive.run() == 1
    record = secretive.record
    assert record.code == "build_secret_missing"
    assert "for token: no key key of a Secret builds in namespace" in record.message
    assert not (secretive.root / "called").exists()


def test_a_dockerfile_outside_of_the_task_is_none(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM a")
    (tmp_path / "task" / "environment").mkdir(parents=True)
    image = ImagePlan(kind="build", reference="r/env:1", context="environment", dockerfile="../../Dockerfile")
    assert find_dockerfile(tmp_path / "task", image) is None
