"""Which builder a run gets: who answers, who has the images, how long that may take, what is said."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from argo_harbor.sandbox import builder as module
from argo_harbor.sandbox.builder import Builder, BuilderError, ImageFacts, NoBuilder, find_builder
from tests.support.builders import stand_in

IMAGE = "example/base:1"


@pytest.fixture
def programs(tmp_path, monkeypatch) -> Path:
    """The only folder in which builders are looked for."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    real = module.shutil.which
    monkeypatch.setattr(module.shutil, "which", lambda name: real(name, path=str(folder)))
    monkeypatch.delenv("BUILDAH_ISOLATION", raising=False)
    return folder


def reason(*images: str, seconds: float = 5) -> str:
    with pytest.raises(NoBuilder) as missing:
        find_builder(images, seconds=seconds)
    return str(missing.value)


def test_no_builder_at_all_is_said_at_once(programs):
    began = time.monotonic()
    assert reason(IMAGE) == "no buildah, podman or docker on this machine"
    assert time.monotonic() - began < 0.1


def test_the_first_that_answers_and_has_the_images_is_taken(programs):
    stand_in(programs, "podman", script='[ "$1" != info ] || exit 1')
    stand_in(
        programs, "docker", config={"Env": ["A=b=c", "BAD NAME=x"], "WorkingDir": "/srv", "User": "root"}
    )
    found = find_builder([IMAGE, IMAGE], seconds=5)
    assert found.builder == Builder("docker", str(programs / "docker"))
    assert found.images == {IMAGE: ImageFacts({"A": "b=c"}, "/srv", "root", "sha256:" + "a" * 64)}
    assert found.images[IMAGE].runs_as_root
    assert (programs / "docker.log").read_text().splitlines() == ["info", f"image inspect {IMAGE}"]


def test_an_image_that_is_missing_is_fetched(programs):
    stand_in(
        programs,
        "podman",
        script='[ "$1" != pull ] || { touch built-other:2; exit 0; }',
        config={"User": "app"},
    )
    found = find_builder(["other:2"], seconds=5)
    assert not found.images["other:2"].runs_as_root
    assert "pull --quiet other:2" in (programs / "podman.log").read_text()


def test_every_builder_says_why_not(programs):
    stand_in(programs, "podman", script='[ "$1" != info ] || { echo; echo "cannot connect" >&2; exit 1; }')
    stand_in(programs, "docker")
    with pytest.raises(NoBuilder) as missing:
        find_builder(["other:2"], seconds=5)
    assert missing.value.brief == "podman does not answer; docker cannot get other:2"
    assert str(missing.value) == (
        "podman: does not answer (cannot connect); "
        "docker: cannot get other:2 (Error: no such thing: pull --quiet other:2)"
    )


def test_an_image_that_never_comes_is_named(programs):
    stand_in(programs, "docker", script='[ "$1" != pull ] || exit 0')
    assert reason("other:2") == "docker: cannot get other:2 (other:2 is not there after it was fetched)"


def test_a_builder_that_hangs_costs_no_more_than_the_time_for_all(programs):
    stand_in(programs, "podman", script='[ "$1" != info ] || sleep 30')
    stand_in(programs, "docker", script='[ "$1" != pull ] || sleep 30')
    began = time.monotonic()
    assert reason(IMAGE, seconds=0.3).startswith("podman: does not answer (no answer within 0 s); docker:")
    assert reason("other:2", seconds=0.3).endswith("docker: had no time left to be asked")
    assert time.monotonic() - began < 3


def test_a_pull_that_hangs_is_given_up(programs):
    stand_in(programs, "docker", script='[ "$1" != pull ] || exec sleep 30')
    began = time.monotonic()
    assert reason("other:2", seconds=0.5).startswith("docker: cannot get other:2 (no answer within")
    assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    "image",
    ["--help", "dir:/etc", "docker-archive:/x.tar", "oci:/x:y", "containers-storage:x/y", "", "a b", "A/B"],
)
def test_only_names_of_a_registry_are_asked_for(programs, image):
    stand_in(programs, "docker")
    assert reason(image) == f"docker: does not know {image!r} as a name of an image"


@pytest.mark.parametrize(
    "image",
    [
        "debian",
        "debian:bookworm-slim",
        "ghcr.io/laude-institute/t-bench/ubuntu-24-04:latest",
        "localhost:5000/a/b:c",
    ],
)
def test_names_of_a_registry_are_known(programs, image):
    stand_in(programs, "docker", image=image)
    assert list(find_builder([image], seconds=5).images) == [image]


def test_a_digest_is_that_of_the_registry(programs):
    digest = "sha256:" + "b" * 64
    named = f"debian@{digest}"
    program = stand_in(programs, "docker", image=named)
    (programs / "docker.json").write_text(
        json.dumps([{"Id": "sha256:x", "RepoDigests": [named], "Config": {"Env": None}}])
    )
    facts = Builder("docker", str(program)).facts(named)
    assert facts == ImageFacts({}, "/", "", digest)
    (programs / "docker.json").write_text(json.dumps([{"Digest": digest, "Config": {}}]))
    facts = Builder("podman", str(program)).facts(named)
    assert facts is not None
    assert facts.digest == digest


@pytest.mark.parametrize(
    "said",
    ["{}", "[]", "no json", '[{"Config": {"Env": [1]}}]', "3", '[{"Config": {"WorkingDir": "a\\u0000"}}]'],
)
def test_a_builder_that_talks_nonsense_is_no_builder(programs, said):
    stand_in(programs, "docker")
    (programs / "docker.json").write_text(said)
    assert reason(IMAGE) == f"docker: cannot get {IMAGE} (docker describes {IMAGE} in an unknown form)"


def test_a_program_that_cannot_be_started_is_none(programs):
    (programs / "docker").write_text("#!/does/not/exist\n")
    (programs / "docker").chmod(0o755)
    assert reason() == "docker: does not answer (No such file or directory)"


BUILDAH = 'case "$1" in info) echo \'{"host": {"OCIRuntime": "%s"}}\'; exit ;; esac'


@pytest.mark.parametrize(
    ("runtime", "isolation", "chroot"),
    [("crun", "", False), ("", "", True), ("crun", "chroot", True), ("", "oci", False)],
)
def test_buildah_without_a_runtime_isolates_by_chroot(programs, monkeypatch, runtime, isolation, chroot):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    if isolation:
        monkeypatch.setenv("BUILDAH_ISOLATION", isolation)
    stand_in(programs, "buildah", script=BUILDAH % runtime)
    found = find_builder([], seconds=5).builder
    assert found.chroot is chroot
    command = found.build("tag", "context", "file")
    assert (command[:3] == ["unshare", "--net", "--"]) is chroot
    assert ("--network" in command) is not chroot, "a build would have a network"
    flatten = found.flatten("context", "file")
    assert (flatten[0] == "unshare", "none" in flatten) == (chroot, not chroot)


def test_an_ordinary_user_needs_a_runtime_to_cut_the_network(programs, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    stand_in(programs, "buildah", script=BUILDAH % "")
    assert reason() == "buildah: needs a container runtime such as crun to build without a network"


def test_an_info_of_unknown_form_means_an_unknown_runtime(programs):
    stand_in(programs, "buildah")
    assert find_builder([], seconds=5).builder == Builder("buildah", str(programs / "buildah"))


@pytest.mark.parametrize("name", ["podman", "docker", "buildah"])
def test_no_build_has_a_network_or_pulls(name):
    command = Builder(name, name).build("tag", "context", "file")
    assert command[:2] == [name, "build"]
    assert command[command.index("--network") + 1] == "none"
    assert {"--pull=never", "--pull=false", "--pull-never"} & set(command)


def test_a_refusal_without_words_has_its_status():
    with pytest.raises(BuilderError, match="exit status 3"):
        module.ask(["sh", "-c", "exit 3"], 5)
