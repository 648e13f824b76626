"""What the runner's image installs, by the file that its Dockerfile runs."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.program import ROOT

FOLDER = ROOT / "docker"
PYPROJECT = ROOT / "pyproject.toml"


@pytest.fixture(scope="module")
def module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("requirements", FOLDER / "requirements.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def lines(module: ModuleType, agents: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = module.requirements(PYPROJECT, agents)
    return found


def test_the_images_differ_only_in_what_harbor_brings(module: ModuleType) -> None:
    everything, small = lines(module, "any"), lines(module, "oracle")
    assert everything["harbor"] == small["harbor"]
    assert everything["build"] == small["build"]
    assert set(everything["run"]) - set(small["run"]) == set(everything["harbor"])
    assert not any("bubblewrap" in line for line in everything["run"])


def test_other_words_are_refused(module: ModuleType) -> None:
    with pytest.raises(KeyError):
        module.requirements(PYPROJECT, "none")


def test_the_pins_allow_what_is_required(module: ModuleType) -> None:
    pins = {
        canonicalize_name(pin.name): pin.specifier
        for line in (FOLDER / "constraints.txt").read_text().splitlines()
        if not line.startswith("#")
        for pin in [Requirement(line)]
    }
    for agents in ("any", "oracle"):
        for line in [*lines(module, agents)["run"], *lines(module, agents)["harbor"]]:
            wanted = Requirement(line)
            (pin,) = pins[canonicalize_name(wanted.name)]
            assert pin.operator == "=="
            assert wanted.specifier.contains(pin.version), line


def test_the_files_do_not_depend_on_the_time(tmp_path: Path) -> None:
    script = FOLDER / "requirements.py"
    subprocess.run([sys.executable, script, PYPROJECT, "any", tmp_path / "made"], check=True)
    found = {path.name: path.stat().st_mtime for path in (tmp_path / "made").iterdir()}
    assert found == {"build.txt": 0, "run.txt": 0, "harbor.txt": 0}
