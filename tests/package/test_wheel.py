"""The built wheel in an empty environment: what users get, without the checkout around it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.support.program import EXAMPLES, ROOT

pytestmark = pytest.mark.package


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT],
        check=True,
    )
    (found,) = folder.glob("argo_harbor-*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=True)
    subprocess.run([folder / "bin/python", "-m", "pip", "install", "--quiet", wheel], check=True)
    return folder


def call(installed: Path, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd), "LANG": "C.UTF-8"}
    return subprocess.run(
        [installed / "bin/argo-harbor", *map(str, arguments)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_holds_what_it_needs_and_no_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("profiles/closed.toml", "profiles/harbor-standard.toml", "profiles/open-internet.toml"):
        assert f"argo_harbor/_data/{name}" in names
    assert any(name.startswith("argo_harbor/_data/templates/report") for name in names)
    assert "argo_harbor/schemas/plan-1.json" in names
    assert "argo_harbor/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "examples/"))]


def test_help(installed: Path, tmp_path: Path) -> None:
    done = call(installed, "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "compile" in done.stdout


def test_profiles(installed: Path, tmp_path: Path) -> None:
    done = call(installed, "profiles", "list", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [item["source"] for item in json.loads(done.stdout)["profiles"]] == ["shipped"] * 3


def test_compile(installed: Path, tmp_path: Path) -> None:
    done = call(
        installed,
        "compile",
        "--harbor-dir",
        EXAMPLES / "mixed",
        "--agent",
        "oracle",
        "-o",
        "out",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/workflow.yaml").is_file()


def test_a_run_without_the_extra_says_what_to_install(installed: Path, tmp_path: Path) -> None:
    done = call(
        installed,
        "runs",
        "submit",
        "--harbor-dir",
        EXAMPLES / "hello-world",
        "--agent",
        "oracle",
        "--json",
        cwd=tmp_path,
    )
    assert done.returncode == 5, done.stdout + done.stderr
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "sandbox_unavailable"
    assert "argo-harbor[run]" in error["hint"]
    assert "Traceback" not in done.stderr
