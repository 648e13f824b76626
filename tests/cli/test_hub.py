"""`--harbor-hub` on the command line, against a Hub on loopback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.support.fixtures_hub import NAME, HubSite
from tests.support.program import Program

pytestmark = [
    pytest.mark.remote,
    pytest.mark.filterwarnings("ignore:The '.*' parameter is deprecated:DeprecationWarning"),
]


def test_list_tasks_pins_the_dataset_and_fetches_nothing(argo_harbor: Command, hub_site: HubSite) -> None:
    done = argo_harbor("compile", "--harbor-hub", NAME, "--list-tasks")
    pinned = f"{NAME}@sha256:{hub_site.version.digest}"
    assert done.status == 0
    assert "acme/task-0002" in done.stdout
    assert done.stdout.rstrip().endswith(pinned)
    listed = argo_harbor("compile", "--harbor-hub", pinned, "--list-tasks", "--tasks", "1", "--json")
    document = listed.json("task-list-document-1")
    assert document["source"] == pinned
    assert document["tasks"] == [{"index": 1, "name": "acme/task-0001"}]
    assert hub_site.hub.downloads() == []


def test_compile_gives_the_plan_of_the_pinned_dataset(
    argo_harbor: Command, hub_site: HubSite, tmp_path: Path
) -> None:
    plans = []
    for text in (NAME, f"{NAME}@sha256:{hub_site.version.digest}"):
        done = argo_harbor(
            "compile", "--harbor-hub", text, "--agent", "oracle", "--tasks", "0,2", "-o", "out"
        )
        assert done.status == 0
        assert "verifier code that will run" in done.stderr
        plans.append((tmp_path / "out/plan.json").read_bytes())
        assert sorted(path.name for path in (tmp_path / "out/tasks").iterdir()) == ["0.json", "2.json"]
    assert plans[0] == plans[1]
    assert f'"source":"{NAME}@sha256:{hub_site.version.digest}"'.encode() in plans[0]
    assert len(hub_site.hub.downloads()) == 2
    here = argo_harbor("compile", "--harbor-dir", hub_site.suite, "--list-tasks", "--json")
    reference = here.json("task-list-document-1")["taskset_ref"].encode()
    assert reference.partition(b"#")[2] in plans[0]


@pytest.mark.parametrize(
    ("text", "code", "status"),
    [
        ("mini", "unknown_flag_value", 2),
        ("acme/mino", "unknown_source_ref", 2),
        (f"{NAME}@9", "unknown_source_ref", 2),
    ],
)
def test_errors(argo_harbor: Command, hub_site: HubSite, text: str, code: str, status: int) -> None:
    done = argo_harbor("compile", "--harbor-hub", text, "--agent", "oracle", "--json")
    assert (done.status, done.error["code"]) == (status, code)


@pytest.fixture
def program(hub_site: HubSite, tmp_path: Path) -> Program:
    folder = tmp_path / "somewhere"
    folder.mkdir()
    return Program(tmp_path / "store", folder)


def test_the_program_uses_the_home_and_the_hub_of_its_environment(
    program: Program, hub_site: HubSite
) -> None:
    environment = {"HOME": str(hub_site.home), "HARBOR_SUPABASE_URL": hub_site.hub.url}
    command = ("compile", "--harbor-hub", NAME, "--agent", "oracle", "--tasks", "*-0001", "--json")
    done = program(*command, env=environment)
    assert done.status == 0
    assert [task["name"] for task in done.json("compile-document-1")["tasks"]] == ["acme/task-0001"]
    assert f"Hub dataset {NAME}@sha256:{hub_site.version.digest}" in done.stderr
    task = hub_site.version.tasks[1]
    assert (hub_site.cache / task.name / task.digest / "task.toml").is_file()
    assert [line for line in hub_site.hub.asked if "/rest/" not in line and "/storage/" not in line] == []


_LIST = """
from argo_harbor.cli.main import run
sys.exit(run(["compile", "--harbor-hub", "acme/mini", "--list-tasks"]))
"""
_WITHOUT_HARBOR = """
import sys

class NoHarbor:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "harbor":
            raise ModuleNotFoundError("No module named 'harbor'", name=name)

sys.meta_path.insert(0, NoHarbor())
"""
_WITHOUT_HOME = """
import os, pwd, sys

def getpwuid(number):
    raise KeyError(number)

pwd.getpwuid = getpwuid
os.environ.pop("HOME", None)
"""


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        (_WITHOUT_HARBOR, "pip install 'argo-harbor[pod]' brings it"),
        (_WITHOUT_HOME, "set HOME to the folder"),
    ],
)
def test_where_harbor_cannot_be_loaded_the_cure_is_the_hint(
    program: Program, setting: str, hint: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", setting + _LIST],
        env=program.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 5
    assert done.stderr.startswith("error[harbor_not_found]")
    assert f"hint: {hint}" in done.stderr
