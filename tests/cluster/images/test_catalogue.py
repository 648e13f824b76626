"""What goes into an image, and that its digest tells two contents apart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from argo_harbor.runner.grants import HARBOR_SWITCHES
from argo_harbor.workflow import names
from argo_harbor.workflow.pods import RUNNER_UID
from tests.cluster.images.catalogue import Image, catalogue
from tests.cluster.images.content import digest, gather
from tests.support.gotools import REPOSITORY

IMAGES = catalogue()
DOCKERFILE = (REPOSITORY / "Dockerfile").read_text()


def test_every_image_stands_on_images_of_the_catalogue() -> None:
    for image in IMAGES.values():
        assert set(image.bases.values()) <= IMAGES.keys()
        assert set(re.findall(r"^ARG (BASE)$", image.dockerfile.read_text(), re.M)) <= image.bases.keys()


def test_the_runner_is_what_users_build() -> None:
    """The same Dockerfile and the same files; only the Python below is another."""
    for name, agents in (("runner", "any"), ("runner-oracle", "oracle")):
        image = IMAGES[name]
        assert image.dockerfile == REPOSITORY / "Dockerfile"
        assert image.arguments == {"AGENTS": agents}
        assert image.bases.keys() == {"PYTHON"}
        assert {"argo_harbor", "docker", "pyproject.toml"} <= image.files.keys()
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.M)
    for source in " ".join(copied).split():
        assert source == "." or source.partition("/")[0] in IMAGES["runner"].files


def test_the_runner_fits_the_pods() -> None:
    assert f"USER {RUNNER_UID}:{RUNNER_UID}" in DOCKERFILE
    assert f"WORKDIR {names.WORK_PATH}" in DOCKERFILE
    assert f"HOME={names.WORK_PATH}" in DOCKERFILE
    for name, value in HARBOR_SWITCHES.items():
        assert f"{name}={value}" in DOCKERFILE


@pytest.fixture
def image(tmp_path: Path) -> Image:
    folder = tmp_path / "package"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "module.py").write_text("x = 1\n")
    (folder / "__pycache__" / "module.pyc").write_bytes(b"old")
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    return Image(
        dockerfile=tmp_path / "Dockerfile",
        files={"package": folder},
        programs={"root/bin/tool": "tool"},
        texts={"root/etc/note": "text"},
        bases={"BASE": "below"},
    )


def test_the_digest_follows_the_content(image: Image, tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("one")

    def of(base: str = "1") -> str:
        return digest(image, programs={"tool": tool}, bases={"below": base})

    first = of()
    (tmp_path / "package" / "__pycache__" / "module.pyc").write_bytes(b"new")
    assert of() == first
    seen = {first, of("2")}
    (tmp_path / "package" / "module.py").write_text("x = 2\n")
    seen.add(of())
    tool.write_text("two")
    seen.add(of())
    (tmp_path / "Dockerfile").write_text("FROM scratch\nUSER 1\n")
    seen.add(of())
    assert len(seen) == 5


def test_the_context_has_what_the_digest_is_over(image: Image, tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("program")
    archive = tmp_path / "debian.tar"
    archive.write_text("files")
    context = tmp_path / "context"
    context.mkdir()
    gather(image, context, programs={"tool": tool}, root=archive)
    found = {str(path.relative_to(context)) for path in context.rglob("*") if path.is_file()}
    assert found == {"root.tar", "package/module.py", "root/bin/tool", "root/etc/note"}
    assert (context / "root/bin/tool").stat().st_mode & 0o777 == 0o755
