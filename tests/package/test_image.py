"""The runner's image, built and entered: what is in it, what is not, and that it starts as in its pods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from argo_harbor.version import __version__
from tests.cluster import packages
from tests.cluster.images.buildah import Buildah
from tests.cluster.images.shelf import Shelf
from tests.support.program import ROOT

pytestmark = pytest.mark.cluster

PROGRAM = "/opt/argo-harbor"
MOST_MEGABYTES = {"runner": 250.0, "runner-oracle": 100.0}
# What the child process of a trial imports before it runs anything.
IMPORTS = """
import harbor.trial.trial, harbor.agents.oracle, harbor.agents.nop
from argo_harbor.runner import child, environment, harbor_config, hooks, regrade, report, session, verifier
"""
# Of the processor: a busy machine says nothing about the image.
TIMED = "import time; import harbor.trial.trial; print(time.process_time())"
UNCOMPILED = f"""{IMPORTS}
import sys
from pathlib import Path
for module in list(sys.modules.values()):
    spec = getattr(module, "__spec__", None)
    if spec and (spec.origin or "").endswith(".py") and not (spec.cached and Path(spec.cached).exists()):
        print(spec.origin)
"""


@dataclass(frozen=True)
class Container:
    """One container on the image. Commands run as the image's own user unless told otherwise."""

    buildah: Buildah
    image: str
    name: str

    def run(self, *command: str, user: str = "") -> str:
        options = ["--user", user] if user else []
        return self.buildah.call("run", *options, self.name, "--", *command)

    def python(self, program: str, *, user: str = "") -> str:
        return self.run("python", "-c", program, user=user)


@pytest.fixture(scope="module", params=["runner", "runner-oracle"])
def container(request: pytest.FixtureRequest) -> Iterator[Container]:
    packages.install(say=print)

    def no_program(name: str) -> Path:
        raise LookupError(name)

    shelf = Shelf(registry="", tools=no_program, say=print)
    with shelf.locked():
        image = shelf.build(request.param)
        name = shelf.buildah.call("from", "--pull-never", image).strip()
    yield Container(shelf.buildah, request.param, name)
    with shelf.locked():
        shelf.buildah.call("rm", name)


def test_it_starts_as_pods_start_it(container: Container) -> None:
    assert container.run("id", "-u").strip() == "65532"
    assert container.run("id", "-g").strip() == "65532"
    assert container.run("pwd").strip() == "/trial"
    assert "usage: python -m argo_harbor.runner" in container.run(
        "python", "-m", "argo_harbor.runner", "--help"
    )
    container.run("sh", "-c", "echo x > $HOME/file && rm $HOME/file")


def test_its_imports_are_there_and_compiled(container: Container) -> None:
    assert container.python(UNCOMPILED) == ""
    seconds = min(float(container.python(TIMED)) for _ in range(3))
    print(f"{container.image}: Python with harbor.trial.trial takes {seconds:.2f} s of the processor")
    assert seconds < 2


def test_harbor_runs_a_trial(container: Container) -> None:
    script = (ROOT / "tests" / "package" / "oracle_trial.py").read_text()
    assert container.python(script, user="0").strip() == "{'reward': 1.0}"


def test_only_one_variant_has_clients_of_models(container: Container) -> None:
    found = container.python("import importlib.util; print(importlib.util.find_spec('litellm') is not None)")
    assert found.strip() == str(container.image == "runner")


def test_nothing_in_it_builds_installs_or_can_be_changed(container: Container) -> None:
    programs = "pip pip3 gcc cc g++ make ld git curl wget"
    assert container.run("sh", "-c", f"for name in {programs}; do command -v $name || true; done") == ""
    assert container.python("import importlib.util; print(importlib.util.find_spec('pip'))").strip() == "None"
    caches = "/root/.cache /var/lib/apt/lists /var/cache/apt /tmp /pip /source /run/secrets /etc/pip.conf"
    left = container.run("sh", "-c", f"find {caches} -type f 2>/dev/null || true", user="0")
    assert left == ""
    assert container.run("find", PROGRAM, "-writable", "-not", "-type", "l") == ""


def test_its_size(container: Container, tmp_path: Path) -> None:
    shelf_image = container.buildah.call("inspect", "--format", "{{.FromImage}}", container.name).strip()
    container.buildah.call("push", shelf_image, f"oci:{tmp_path}/image")
    index = json.loads((tmp_path / "image" / "index.json").read_text())
    digest = index["manifests"][0]["digest"].removeprefix("sha256:")
    manifest = json.loads((tmp_path / "image" / "blobs" / "sha256" / digest).read_text())
    megabytes = sum(layer["size"] for layer in manifest["layers"]) / 1e6
    print(f"{container.image}: {megabytes:.1f} MB compressed")
    assert megabytes < MOST_MEGABYTES[container.image]


def test_what_is_installed_is_pinned(container: Container) -> None:
    listed = container.python(
        "from importlib.metadata import distributions\n"
        "print(*(f'{d.name}=={d.version}' for d in distributions()), sep='\\n')"
    )
    installed = {_same(line) for line in listed.splitlines()}
    pinned = {_same(line) for line in (ROOT / "docker" / "constraints.txt").read_text().splitlines()}
    assert installed - pinned == {f"argo-harbor=={__version__}"}


def _same(line: str) -> str:
    name, _, version = line.partition("==")
    return f"{canonicalize_name(name)}=={version}"
