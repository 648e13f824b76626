"""Dockerfiles carried out in real sandboxes, once per image, and what trials get of them."""

from __future__ import annotations

import asyncio
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from argo_harbor.errors import Refused
from argo_harbor.sandbox import build
from argo_harbor.sandbox import preview as preview_module
from argo_harbor.sandbox.base import ImageBuildFailed
from argo_harbor.sandbox.bubblewrap import BubblewrapSandbox
from argo_harbor.sandbox.build import ensure_base
from argo_harbor.sandbox.image import Base
from argo_harbor.sandbox.preview import prepare_preview
from argo_harbor.sandbox.scratch import remove_scratch
from tests.sandbox.ordinary import as_ordinary_user

pytestmark = pytest.mark.sandbox

DOCKERFILE = """\
FROM example.org/base:1
ARG WHO=world
ENV GREETING="hello ${WHO}" PATH=/opt/bin:$PATH
WORKDIR /srv/app
COPY . .
COPY --chmod=0755 tool /opt/bin/
COPY <<note.txt /etc/
written for $WHO
note.txt
ADD bundle.tgz /opt/bundle
RUN echo "$GREETING from $PWD" > made && rm /usr/bin/awk && ln -s python3 /usr/local/bin/py
RUN ["sh", "-c", "mkdir -p /var/lib/x && chmod 700 /var/lib/x && test $# = 0"]
CMD ["never"]
"""


@pytest.fixture
def context(tmp_path: Path) -> Path:
    return make_context(tmp_path / "environment")


def make_context(folder: Path) -> Path:
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "x").write_text("x")
    (folder / "tool").write_text("#!/bin/sh\necho tool\n")
    (folder / "Dockerfile").write_text(DOCKERFILE)
    (folder / ".dockerignore").write_text("Dockerfile\nbundle.tgz.d\n")
    with tarfile.open(folder / "bundle.tgz", "w:gz") as tar:
        tar.add(folder / "data", "inner")
    return folder


@pytest.fixture
def run_scratch(scratch: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir=scratch))
    folder.chmod(0o711)
    yield folder
    remove_scratch(folder)


def make(scratch: Path, preview, context: Path, key: str = "key") -> Base:
    return asyncio.run(ensure_base(scratch, preview=preview, key=key, context=context))


def test_a_trial_starts_from_what_the_build_left(sandboxes, run_scratch, preview, context):
    base = make(run_scratch, preview, context)
    assert (base.base, base.from_image, base.workdir) == ("preview", "example.org/base:1", "/srv/app")

    async def use(sandbox):
        look = await sandbox.exec(
            "pwd; cat made; tool; cat /etc/note.txt /opt/bundle/inner/x; echo; ls -A; ls /opt/bundle"
            "; test -e /usr/bin/awk || echo no awk; readlink /usr/local/bin/py; stat -c %a /var/lib/x"
            "; echo changed > made; rm /opt/bin/tool"
        )
        return look.stdout

    expected = (
        "/srv/app\nhello world from /srv/app\ntool\nwritten for world\nx\n"
        ".dockerignore\nbundle.tgz\ndata\nmade\ntool\ninner\nno awk\npython3\n700\n"
    )
    assert sandboxes.run(use, base=base) == expected
    assert sandboxes.run(use, base=base) == expected, "one trial changed what the next one got"


def test_an_image_is_built_once_even_by_two_at_a_time(run_scratch, preview, context, monkeypatch):
    built = []
    real = build.build_base

    async def counting(*args, **options):
        built.append(options["layers"].name)
        return await real(*args, **options)

    monkeypatch.setattr(build, "build_base", counting)

    async def whole():
        return await asyncio.gather(
            *(ensure_base(run_scratch, preview=preview, key="same", context=context) for _ in range(3)),
            ensure_base(run_scratch, preview=preview, key="other", context=context),
        )

    first, second, third, other = asyncio.run(whole())
    assert first == second == third
    assert other.layers != first.layers
    assert sorted(built) == ["other", "same"]
    assert make(run_scratch, preview, context, "same") == first
    assert sorted(p.name for p in (run_scratch / "bases").iterdir()) == [
        *("other", "other.json", "other.lock", "same", "same.json", "same.lock")
    ]


def test_a_failing_step_is_named_and_remembered(run_scratch, preview, context):
    text = "FROM x\nRUN echo once >> /tmp/x\nRUN echo said; echo loud >&2; exit 3\nRUN never\n"
    (context / "Dockerfile").write_text(text)
    for _ in range(2):
        with pytest.raises(ImageBuildFailed) as failed:
            make(run_scratch, preview, context)
        assert failed.value.step == "line 3: RUN echo said; echo loud >&2; exit 3"
        assert failed.value.log == "said\nloud\nexit status 3"
        assert not failed.value.retryable
        (context / "Dockerfile").write_text("FROM x\n")
    assert sorted(p.name for p in (run_scratch / "bases").iterdir()) == ["key.json", "key.lock"]


def test_a_step_has_no_network_and_no_endless_time(run_scratch, preview, context, monkeypatch):
    monkeypatch.setattr(build, "RUN_SECONDS", 0.3)
    (context / "Dockerfile").write_text("FROM x\nRUN tail -n +3 /proc/net/dev | cut -d: -f1 && sleep 60\n")
    with pytest.raises(ImageBuildFailed) as failed:
        make(run_scratch, preview, context)
    assert failed.value.log.split() == ["lo", *["ended", "after", "0", "s"]]


@pytest.mark.parametrize(
    ("instruction", "says"),
    [
        ("COPY missing /x", "missing names nothing"),
        ("COPY escape /x", "leads out"),
        ("COPY tool /etc/passwd/", "etc"),
    ],
)
def test_a_copy_that_cannot_be_done_fails_the_build(run_scratch, preview, context, instruction, says):
    (context / "escape").symlink_to("/etc/passwd")
    (context / "Dockerfile").write_text(f"FROM x\n{instruction}\n")
    with pytest.raises(ImageBuildFailed) as failed:
        make(run_scratch, preview, context)
    assert failed.value.step == f"line 2: {instruction}"
    assert says in failed.value.log


def test_a_dockerfile_that_the_preview_cannot_do_is_refused(run_scratch, preview, context):
    (context / "Dockerfile").write_text("FROM x\nEXPOSE 80\n")
    with pytest.raises(Refused) as refused:
        make(run_scratch, preview, context)
    assert refused.value.code == "preview_unsupported"


def test_a_file_without_steps_needs_no_sandbox(run_scratch, preview, context):
    (context / "Dockerfile").write_text("FROM x\nENV A=b\nLABEL c=d\n")
    base = make(run_scratch, preview, context)
    assert (base.layers, base.env["A"], base.workdir) == ("", "b", "/")


def test_a_key_is_a_plain_name(run_scratch, preview, context):
    for key in ("../x", "", "a/b", ".hidden"):
        with pytest.raises(ValueError, match="cannot name"):
            make(run_scratch, preview, context, key)


def test_a_cancelled_build_leaves_nothing_and_can_be_repeated(run_scratch, preview, context):
    (context / "Dockerfile").write_text("FROM x\nRUN sleep 60\n")

    async def whole():
        building = asyncio.create_task(ensure_base(run_scratch, preview=preview, key="key", context=context))
        waiting = asyncio.create_task(ensure_base(run_scratch, preview=preview, key="key", context=context))
        while not (run_scratch / "bases" / "key.building").exists():
            await asyncio.sleep(0.01)
        for task in (waiting, building):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(whole())
    assert [p.name for p in (run_scratch / "bases").iterdir()] == ["key.lock"]
    (context / "Dockerfile").write_text("FROM x\nRUN true\n")
    (run_scratch / "bases" / "key.building" / "upper").mkdir(parents=True)
    assert make(run_scratch, preview, context).layers


def test_an_ordinary_user_builds_the_same_way(everything_loaded, run_scratch, preview, context, monkeypatch):
    make(run_scratch, preview, context)
    # Takes seconds, and has a test of its own.
    monkeypatch.setattr(preview_module, "closed_paths", lambda source: iter(()))

    def check() -> None:
        scratch = Path(tempfile.mkdtemp())
        try:
            asyncio.run(whole(scratch))
        finally:
            remove_scratch(scratch)

    async def whole(scratch: Path) -> None:
        preview = prepare_preview(scratch)
        context = make_context(scratch / "environment")
        base = await ensure_base(scratch, preview=preview, key="key", context=context)
        sandbox = BubblewrapSandbox(scratch / "one", ground=preview, base=base)
        await sandbox.start()
        try:
            seen = await sandbox.exec("cat made; tool; test -e /usr/bin/awk || echo no awk")
        finally:
            await sandbox.stop()
        assert seen.stdout == "hello world from /srv/app\ntool\nno awk\n", seen

    as_ordinary_user(check)
