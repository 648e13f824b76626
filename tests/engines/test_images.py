"""Runs on real images: built and fetched by a builder of this machine, where there is one."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from argo_harbor.engines import events
from argo_harbor.engines.base import SubmitOptions
from argo_harbor.engines.bases import choose_base, images_of
from argo_harbor.errors import PlatformError, Refused
from argo_harbor.model.spec import RunSpec
from argo_harbor.planning.plan import plan
from argo_harbor.sandbox import rootfs
from argo_harbor.sources.read import load_taskset
from tests.engines.conftest import Bench
from tests.engines.suite import write_task

BASE = "localhost/argo-harbor-test-base"
PROGRAMS = ("bash", "cat", "chmod", "find", "ls", "mkdir", "rm", "sleep")


@pytest.fixture(scope="module")
def base_image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A small image of this machine's own programs, made without a registry."""
    buildah = shutil.which("buildah")
    if buildah is None:
        pytest.skip("images need buildah on this machine")
    folder = tmp_path_factory.mktemp("image")
    for program in PROGRAMS:
        _copy_program(shutil.which(program) or "", folder / "root")
    (folder / "root" / "bin").symlink_to("usr/bin")
    (folder / "root" / "usr" / "bin" / "sh").symlink_to("bash")
    (folder / "Dockerfile").write_text("FROM scratch\nCOPY root/ /\nENV PATH=/usr/bin\nENV FROM_IMAGE=yes\n")
    command = [buildah, "build", "--quiet", "--isolation", "chroot", "--tag", BASE, str(folder)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"buildah cannot build here: {made.stderr.strip()}")
    yield BASE
    image = made.stdout.strip().rpartition("\n")[2]
    subprocess.run([buildah, "rmi", "--force", image], capture_output=True, check=False)


def _copy_program(path: str, root: Path) -> None:
    """Copy a program and the libraries that it loads to the same places below `root`."""
    libraries = re.findall(
        r"(/\S+) \(0x", subprocess.run(["ldd", path], capture_output=True, text=True).stdout
    )
    target = root / "usr" / "bin" / Path(path).name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, target)
    for library in libraries:
        place = root / library.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, place)


@pytest.mark.sandbox
def test_tasks_run_on_built_and_on_prebuilt_images(bench: Bench, tmp_path: Path, base_image: str) -> None:
    suite = tmp_path / "suite"
    write_task(
        suite,
        "built",
        dockerfile=f"FROM {base_image}\nRUN echo step > /built\nWORKDIR /here\n",
        solve="cat /built; echo $FROM_IMAGE $PWD",
    )
    prebuilt = write_task(
        suite, "prebuilt", solve="ls /usr/bin", toml=f'[environment]\ndocker_image = "{base_image}"\n'
    )
    shutil.rmtree(prebuilt / "environment")
    broken = f"FROM {base_image}\nRUN exit 7\n"
    write_task(suite, "unbuildable", dockerfile=broken)
    ran = bench.run(suite, options=SubmitOptions(base="image"))
    assert ran.of(events.RunAccepted)[0].base == "image"
    built, ready = ran.record("built"), ran.record("prebuilt")
    assert built.rewards == ready.rewards == {"reward": 1.0}
    assert built.sandbox.base == ready.sandbox.base == "image"
    assert built.sandbox.image_digest.startswith("sha256:")
    assert ran.text(built, "agent/oracle.txt") == "step\nyes /here\n"
    assert set(PROGRAMS) <= set(ran.text(ready, "agent/oracle.txt").split())
    (failed,) = [event for event in ran.of(events.BuildFinished) if event.error]
    assert failed.tasks == ("unbuildable",)
    tasks = {line.name: line for line in ran.engine.survey(ran.run_id).tasks().tasks}
    assert "image_build_failed" in tasks["unbuildable"].detail


@pytest.mark.sandbox
def test_what_images_here_cannot_do_is_refused(bench: Bench, tmp_path: Path, base_image: str) -> None:
    suite = tmp_path / "suite"
    write_task(suite, "user", dockerfile=f"FROM {base_image}\nUSER nobody\n")
    write_task(suite, "fetch", dockerfile=f"FROM {base_image}\nADD https://example.com/x /x\n")
    with pytest.raises(Refused) as caught:
        bench.run(suite, options=SubmitOptions(base="image"))
    assert {(item.code, item.task) for item in caught.value.items} == {
        ("local_user_unsupported", "user"),
        ("local_network_unenforceable", "fetch"),
    }


def test_without_a_builder_the_preview_does_unless_images_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    write_task(tmp_path / "suite", "one")
    planned = plan(load_taskset(tmp_path / "suite"), RunSpec.for_agent("nop"))
    chosen = choose_base(images_of(planned.parts), "auto")
    assert (chosen.kind, chosen.builder) == ("preview", None)
    assert "no buildah, podman or docker" in chosen.reason
    assert choose_base(images_of(planned.parts), "preview").reason == ""
    with pytest.raises(PlatformError) as caught:
        choose_base(images_of(planned.parts), "image")
    assert caught.value.code == "sandbox_unavailable"


def _prebuilt(suite: Path, name: str, image: str) -> None:
    task = write_task(suite, name, toml=f'[environment]\ndocker_image = "{image}"\n')
    shutil.rmtree(task / "environment")


@pytest.mark.sandbox
def test_a_prebuilt_image_of_another_user_is_refused(bench: Bench, tmp_path: Path, base_image: str) -> None:
    other = f"{base_image}-user"
    (tmp_path / "Dockerfile").write_text(f"FROM {base_image}\nUSER 1000:1000\n")
    command = ["buildah", "build", "--quiet", "--isolation", "chroot", "--tag", other, str(tmp_path)]
    subprocess.run(command, capture_output=True, check=True)
    _prebuilt(tmp_path / "suite", "other", other)
    try:
        with pytest.raises(Refused) as caught:
            bench.run(tmp_path / "suite", options=SubmitOptions(base="image"))
    finally:
        subprocess.run(["buildah", "rmi", other], capture_output=True, check=True)
    (found,) = caught.value.items
    assert (found.code, found.task, found.file) == ("local_user_unsupported", "other", "other/task.toml")
    assert "1000:1000" in found.message


@pytest.mark.sandbox
def test_a_prebuilt_image_that_cannot_be_read_is_an_error_of_its_trials(
    bench: Bench, tmp_path: Path, base_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rootfs, "MAX_ENTRIES", 1)
    _prebuilt(tmp_path / "suite", "large", base_image)
    records = bench.run(tmp_path / "suite", options=SubmitOptions(base="image")).records()
    assert [record.final for record in records].count(True) == 1
    for record in records:
        assert record.error is not None
        assert record.error.code == "image_build_failed"
        assert "more than 1 files" in record.error.message
