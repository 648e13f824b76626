"""Images made ready for sandboxes, by a real buildah and by stand-ins, and what trials find of them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from argo_harbor.sandbox import images
from argo_harbor.sandbox.base import ImageBuildFailed, SandboxStartFailed
from argo_harbor.sandbox.bubblewrap import BubblewrapSandbox
from argo_harbor.sandbox.builder import Builder, find_builder
from argo_harbor.sandbox.image import Base
from argo_harbor.sandbox.images import Recipe, find_image, prebuilt_key, prepare_built, prepare_prebuilt
from argo_harbor.sandbox.scratch import remove_scratch
from argo_harbor.sandbox.toolbox import INSIDE, ImageGround, prepare_image_ground
from tests.support.builders import BASE, commit, make_base_image, needs_buildah, own_storage, run, stand_in

pytestmark = pytest.mark.sandbox

DOCKERFILE = f"""\
FROM {BASE} AS first
USER app
RUN id -u > /tmp/user
FROM {BASE}
ENV GREETING="hello world"
WORKDIR /srv/app
COPY --from=first /tmp/user .
COPY data data
RUN cat /proc/net/dev | wc -l > net && echo "$GREETING" > said && chmod 4755 said && env > env
EXPOSE 80
"""


@pytest.fixture(scope="module")
def buildah(tmp_path_factory) -> Iterator[Builder]:
    """A real one with one base image in a storage of its own."""
    needs_buildah()
    with pytest.MonkeyPatch.context() as environ:
        environ.setenv("http_proxy", "http://user:password@proxy.example")
        with own_storage(tmp_path_factory.mktemp("storage"), environ):
            make_base_image(tmp_path_factory.mktemp("base"), BASE, "--env", "A=image")
            yield find_builder([BASE], seconds=20).builder


@pytest.fixture(scope="module")
def ground(scratch: Path) -> ImageGround:
    return prepare_image_ground(scratch)


@pytest.fixture
def run_scratch(scratch: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir=scratch))
    folder.chmod(0o711)
    yield folder
    remove_scratch(folder)


@pytest.fixture
def context(tmp_path: Path) -> Path:
    folder = tmp_path / "environment"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "x").write_text("x")
    (folder / "Dockerfile").write_text(DOCKERFILE)
    return folder


def build(scratch: Path, builder: Builder, context: Path, key: str = "key") -> Base:
    return asyncio.run(prepare_built(scratch, builder=builder, key=key, recipe=Recipe(context)))


def names(builder: Builder) -> list[str]:
    listed = run(builder.program, "images", "--format", "{{.Name}}").splitlines()
    return sorted(listed) + run(builder.program, "containers", "--quiet").splitlines()


def test_a_trial_starts_from_the_image_that_was_built(sandboxes, buildah, ground, run_scratch, context):
    before = names(buildah)
    base = build(run_scratch, buildah, context)
    assert (base.base, base.workdir, base.env["GREETING"], base.env["A"]) == (
        *("image", "/srv/app", "hello world"),
        "image",
    )
    assert base.digest.startswith("sha256:")
    assert names(buildah) == before, "the build left something with the builder"
    assert find_image(run_scratch, "key") == base

    async def use(sandbox: BubblewrapSandbox) -> str:
        look = await sandbox.exec(
            "pwd; cat user data/x; echo; cat net; cat said; [ -u said ] || echo plain; wc -l < /proc/net/dev"
            "; [[ x == x ]] && echo $BASH; grep -c . env || true; ls /etc; id -u"
            "; [ -e /usr/bin/python3 ] || echo other files; echo changed > said"
        )
        proxy = await sandbox.exec("cat env")
        assert "proxy" not in proxy.stdout
        return look.stdout

    expected = (
        "/srv/app\n1000\nx\n3\nhello world\nplain\n3\n/bin/bash\nhostname\nhosts\npasswd\n0\nother files\n"
    )
    assert sandboxes.run(use, ground=ground, base=base) == expected
    assert sandboxes.run(use, ground=ground, base=base) == expected, "one trial changed what the next one got"


def test_a_sandbox_of_an_image_without_tar_takes_and_gives_files(
    sandboxes, buildah, ground, run_scratch, tmp_path
):
    base = asyncio.run(prepare_prebuilt(run_scratch, builder=buildah, reference=BASE))
    assert find_image(run_scratch, prebuilt_key(BASE)) == base
    (tmp_path / "up").mkdir()
    (tmp_path / "up" / "tool").write_text("#!/bin/sh\necho used\n")
    (tmp_path / "up" / "tool").chmod(0o755)

    async def use(sandbox: BubblewrapSandbox) -> None:
        assert (await sandbox.exec("tar --version")).return_code == 127
        await sandbox.upload(tmp_path / "up", "/deep/folder")
        assert (await sandbox.exec("/deep/folder/tool")).stdout == "used\n"
        down = await sandbox.download_folder("/deep", tmp_path / "down")
        assert (down.files, (tmp_path / "down/folder/tool").stat().st_mode & 0o777) == (1, 0o755)
        await sandbox.download_file("/etc/hosts", tmp_path / "hosts")
        assert "localhost" in (tmp_path / "hosts").read_text()

    sandboxes.run(use, ground=ground, base=base)


def test_our_programs_inside_cannot_be_changed_and_rights_are_a_containers(
    sandboxes, buildah, ground, run_scratch
):
    base = asyncio.run(prepare_prebuilt(run_scratch, builder=buildah, reference=BASE))

    async def use(sandbox: BubblewrapSandbox) -> None:
        tried = await sandbox.exec(
            f"rm -rf {INSIDE}; cp /bin/bash {INSIDE}/sh; mkdir {INSIDE}/x; ls {INSIDE}"
        )
        assert {"sh", "tar", "setpriv"} <= set(tried.stdout.split())
        assert tried.stderr.count("Read-only file system") >= 2
        status = (await sandbox.exec("cat /proc/self/status")).stdout
        assert "CapEff:\t00000000000404fb" in status
        assert "NoNewPrivs:\t1" in status
        await sandbox.exec("sleep 60 & echo $!")
        await sandbox.kill_leftovers()
        left = await sandbox.exec("cat /proc/[0-9]*/comm")
        assert "sleep" not in left.stdout

    sandboxes.run(use, ground=ground, base=base)


def test_a_library_of_the_task_is_not_loaded_into_our_programs(sandboxes, buildah, ground, run_scratch):
    base = asyncio.run(prepare_prebuilt(run_scratch, builder=buildah, reference=BASE))

    async def use(sandbox: BubblewrapSandbox) -> str:
        await sandbox.exec("echo /no/such/library.so > /etc/ld.so.preload")
        return (await sandbox.exec("true")).stderr

    # The loader complains once for each program: here for the image's own shell alone.
    assert sandboxes.run(use, ground=ground, base=base).count("cannot be preloaded") == 1


def test_an_unfenced_sandbox_resolves_names_as_the_host(sandboxes, buildah, ground, run_scratch):
    base = asyncio.run(prepare_prebuilt(run_scratch, builder=buildah, reference=BASE))

    async def use(sandbox: BubblewrapSandbox) -> str:
        return (await sandbox.exec("cat /etc/resolv.conf /etc/hostname")).stdout

    host = Path("/etc/resolv.conf").read_text() if Path("/etc/resolv.conf").exists() else ""
    assert sandboxes.run(use, ground=ground, base=base, network="unfenced") == host + "sandbox\n"
    assert sandboxes.run(use, ground=ground, base=base) == "sandbox\n"


def test_an_image_without_a_shell_says_so(sandboxes, buildah, ground, run_scratch):
    name = commit("localhost/argo-harbor-test-empty", None)
    base = asyncio.run(prepare_prebuilt(run_scratch, builder=buildah, reference=name))

    async def use(sandbox: BubblewrapSandbox) -> None:
        result = await sandbox.exec("echo hello")
        assert (result.return_code, result.stderr) == (127, "there is no /usr/bin/sh in this image\n")

    sandboxes.run(use, ground=ground, base=base)


def test_a_failing_step_is_named_and_remembered(buildah, run_scratch, context):
    (context / "Dockerfile").write_text(f"FROM {BASE}\nRUN echo said; exit 3\nRUN never\n")
    before = names(buildah)
    for _ in range(2):
        with pytest.raises(ImageBuildFailed) as failed:
            build(run_scratch, buildah, context)
        assert failed.value.step == "STEP 2/3: RUN echo said; exit 3"
        assert "\nsaid\n" in failed.value.log
        (context / "Dockerfile").write_text(f"FROM {BASE}\n")
    with pytest.raises(ImageBuildFailed):
        find_image(run_scratch, "key")
    assert names(buildah) == before


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("FROM localhost/not-there", "buildah build"),
        (f"FROM {BASE}\nUSER app", "USER app"),
        ("FROM", "buildah build"),
    ],
)
def test_what_cannot_become_a_sandbox_fails_the_build(buildah, run_scratch, context, line, step):
    (context / "Dockerfile").write_text(line + "\n")
    with pytest.raises(ImageBuildFailed) as failed:
        build(run_scratch, buildah, context)
    assert step in failed.value.step or "FROM" in failed.value.step


def test_a_cancelled_build_leaves_nothing_and_can_be_repeated(buildah, run_scratch, context):
    mark = f"6{os.getpid()}.5"
    (context / "Dockerfile").write_text(f"FROM {BASE}\nRUN sleep {mark}\n")
    before = names(buildah)

    async def whole() -> None:
        building = asyncio.create_task(
            prepare_built(run_scratch, builder=buildah, key="key", recipe=Recipe(context))
        )
        while not sleeping(mark):
            assert not building.done(), building.exception()
            await asyncio.sleep(0.02)
        building.cancel()
        with pytest.raises(asyncio.CancelledError):
            await building

    asyncio.run(whole())
    assert not sleeping(mark)
    assert [path.name for path in (run_scratch / "bases").iterdir()] == ["key.lock"]
    assert names(buildah) == before
    (context / "Dockerfile").write_text(f"FROM {BASE}\n")
    assert build(run_scratch, buildah, context).env["A"] == "image"


def sleeping(mark: str) -> bool:
    return subprocess.run(["pgrep", "-f", f"^sleep {mark}"], check=False, capture_output=True).returncode == 0


def test_an_image_nobody_made_ready_is_no_sandbox(run_scratch):
    with pytest.raises(SandboxStartFailed, match="not made ready"):
        find_image(run_scratch, "key")


@pytest.fixture
def docker(tmp_path: Path) -> Builder:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "hello").write_text("hello")
    with tarfile.open(folder / "docker.tar", "w") as out:
        out.add(folder / "hello", "srv/hello")
    return Builder("docker", str(stand_in(folder, "docker", config={"WorkingDir": "/srv"})))


def log(docker: Builder) -> list[str]:
    lines = Path(docker.program).with_suffix(".log").read_text().splitlines()
    return [line.split()[0] for line in lines]


def test_a_container_that_is_never_started_gives_its_files(docker, run_scratch, context):
    base = build(run_scratch, docker, context)
    assert (Path(base.layers) / "root" / "srv" / "hello").read_text() == "hello"
    assert log(docker) == ["build", "image", "create", "export", "rm", "rmi"]
    prebuilt = asyncio.run(prepare_prebuilt(run_scratch, builder=docker, reference="example/base:1"))
    assert prebuilt.workdir == "/srv"
    assert log(docker)[6:] == ["image", "create", "export", "rm"], "an image of the user's was removed"
    assert build(run_scratch, docker, context) == base
    assert len(log(docker)) == 10


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ('[ "$1" != create ] || { echo no room >&2; exit 1; }', "no room"),
        ('[ "$1" != create ] || exit 0', "exit status 0"),
        ('[ "$1" != export ] || { echo lost it >&2; exit 1; }', "lost it"),
        ('[ "$1" != export ] || { cat docker.tar; echo lost it >&2; exit 1; }', "lost it"),
        ('[ "$1" != export ] || { echo rubbish; exit 0; }', "cut short"),
        ('[ "$1" != image ] || exit 1', "is gone"),
        ('[ "$1" != image ] || { echo rubbish; exit 0; }', "unknown form"),
    ],
)
def test_a_builder_that_fails_fails_the_image(docker, run_scratch, script, says):
    program = Path(docker.program)
    stand_in(program.parent, "docker", script=script)
    with pytest.raises(ImageBuildFailed) as failed:
        asyncio.run(prepare_prebuilt(run_scratch, builder=docker, reference="example/base:1"))
    assert says in failed.value.log
    left = [path.name for path in (run_scratch / "bases").iterdir() if path.is_dir()]
    assert left == []


def test_a_build_without_end_is_ended(docker, run_scratch, context, monkeypatch):
    monkeypatch.setattr(images, "BUILD_SECONDS", 0.3)
    stand_in(
        Path(docker.program).parent, "docker", script='[ "$1" != build ] || { echo STEP 1: x; sleep 60; }'
    )
    began = time.monotonic()
    with pytest.raises(ImageBuildFailed) as failed:
        build(run_scratch, docker, context)
    assert failed.value.step == "STEP 1: x"
    assert failed.value.log.endswith("ended after 0 s")
    assert time.monotonic() - began < 20


def test_a_cancelled_export_ends_the_builder_and_removes_the_container(docker, run_scratch):
    program = Path(docker.program)
    stand_in(program.parent, "docker", script='[ "$1" != export ] || { touch exporting; exec sleep 60; }')

    async def whole() -> None:
        laying = asyncio.create_task(
            prepare_prebuilt(run_scratch, builder=docker, reference="example/base:1")
        )
        while not (program.parent / "exporting").exists():
            await asyncio.sleep(0.02)
        laying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await laying

    began = time.monotonic()
    asyncio.run(whole())
    assert time.monotonic() - began < 10
    assert log(docker)[-2:] == ["export", "rm"]
    assert not any(path.is_dir() for path in (run_scratch / "bases").iterdir())
