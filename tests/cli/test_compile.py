from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Command
from tests.support.program import EXAMPLES

MIXED = EXAMPLES / "mixed"


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_writes_the_workflow_the_plan_and_each_task(argo_harbor: Command, tmp_path: Path) -> None:
    done = argo_harbor("compile", "--harbor-dir", MIXED, "--agent", "oracle", "-o", "out")
    assert done.status == 0
    written = files(tmp_path / "out")
    total = len(list(MIXED.glob("*/task.toml")))
    assert set(written) == {"workflow.yaml", "plan.json", *(f"tasks/{index}.json" for index in range(total))}
    assert yaml.safe_load(written["workflow.yaml"])["kind"] == "Workflow"
    import hashlib

    digest = hashlib.sha256(written["plan.json"]).hexdigest()
    assert done.stdout.splitlines()[-1] == f"Plan {digest}"
    assert "argo-harbor-examples/reward-txt" in done.stdout


def test_the_default_folder_is_named_after_the_taskset(argo_harbor: Command, tmp_path: Path) -> None:
    assert argo_harbor("compile", "--harbor-dir", EXAMPLES / "hello-world", "--agent", "nop").status == 0
    assert (tmp_path / "hello-world-compiled/workflow.yaml").is_file()


def test_again_and_elsewhere_gives_the_same_bytes(argo_harbor: Command, tmp_path: Path) -> None:
    import shutil

    copy = shutil.copytree(MIXED, tmp_path / "elsewhere/mixed")
    for suite, out in ((MIXED, "one"), (copy, "two"), (MIXED, "one")):
        assert argo_harbor("compile", "--harbor-dir", suite, "--agent", "oracle", "-o", out).status == 0
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_an_earlier_output_is_replaced_whole(argo_harbor: Command, tmp_path: Path) -> None:
    argo_harbor("compile", "--harbor-dir", MIXED, "--agent", "oracle", "-o", "out")
    argo_harbor("compile", "--harbor-dir", EXAMPLES / "hello-world", "--agent", "oracle", "-o", "out")
    assert set(files(tmp_path / "out")) == {"workflow.yaml", "plan.json", "tasks/0.json"}


def test_the_folder_behind_a_link_is_the_output(argo_harbor: Command, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "new-link").symlink_to("new")
    for name, behind in (("link", "real"), ("new-link", "new")):
        done = argo_harbor("compile", "--harbor-dir", MIXED, "--agent", "oracle", "-o", name)
        assert done.status == 0
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / behind / "plan.json").is_file()


def test_the_current_folder_can_be_the_output(
    argo_harbor: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    for _ in range(2):
        monkeypatch.chdir(tmp_path / "here")
        assert argo_harbor("compile", "--harbor-dir", MIXED, "--agent", "oracle", "-o", ".").status == 0
        assert (tmp_path / "here/plan.json").is_file()


@pytest.mark.parametrize(
    "foreign", ["notes.txt", ".git", "tasks/my-task", "parts/a.yaml", "tasks/0.json.bak"]
)
def test_what_compile_did_not_write_stays(argo_harbor: Command, tmp_path: Path, foreign: str) -> None:
    argo_harbor("compile", "--harbor-dir", MIXED, "--agent", "oracle", "-o", "out")
    path = tmp_path / "out" / foreign
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    done = argo_harbor("compile", "--harbor-dir", MIXED, "--agent", "oracle", "-o", "out", "--json")
    assert (done.status, done.error["code"]) == (2, "output_not_empty")
    assert foreign in done.error["message"]
    assert path.read_text() == "mine"


def test_an_output_name_that_no_folder_can_have(argo_harbor: Command) -> None:
    done = argo_harbor("compile", "--harbor-dir", MIXED, "--agent", "oracle", "-o", "x" * 300, "--json")
    assert (done.status, done.error["code"]) == (5, "store_write_failed")
    assert "name too long" in done.error["message"]


def test_stdout_gets_only_the_workflow(argo_harbor: Command, tmp_path: Path) -> None:
    done = argo_harbor("compile", "--harbor-dir", MIXED, "--agent", "oracle", "-o", "-")
    assert done.status == 0
    assert yaml.safe_load(done.stdout)["spec"]["entrypoint"] == "main"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "extra", "written"),
    [
        ("workflow", [], "Workflow"),
        ("workflowtemplate", [], "WorkflowTemplate"),
        ("cronworkflow", ["--schedule", "0 3 * * *"], "CronWorkflow"),
        ("cronworkflow", [], "CronWorkflow"),
    ],
)
def test_kinds(argo_harbor: Command, kind: str, extra: list[str], written: str) -> None:
    done = argo_harbor("compile", "--harbor-dir", MIXED, "--agent", "oracle", "--as", kind, *extra, "-o", "-")
    assert yaml.safe_load(done.stdout)["kind"] == written


def test_json(argo_harbor: Command) -> None:
    done = argo_harbor(
        "compile", "--harbor-dir", MIXED, "--agent", "oracle", "-o", "out", "--tasks", "3,7", "--json"
    )
    document = done.json("compile-document-1")
    assert [task["index"] for task in document["tasks"]] == [3, 7]
    assert "workflow.yaml" in document["files"]
    assert document["taskset_ref"].startswith("mixed#")


def test_a_refused_task_can_be_skipped(argo_harbor: Command, tmp_path: Path) -> None:
    import shutil

    suite = shutil.copytree(MIXED, tmp_path / "mixed")
    toml = suite / "reward-txt/task.toml"
    toml.write_text(toml.read_text() + "\n[environment.env]\nKEY = '${SOME_KEY}'\n")
    refused = argo_harbor("compile", "--harbor-dir", suite, "--agent", "oracle", "-o", "out", "--json")
    assert (refused.status, refused.error["code"]) == (3, "env_not_granted")
    done = argo_harbor(
        "compile", "--harbor-dir", suite, "--agent", "oracle", "-o", "out", "--skip-refused", "--json"
    )
    assert done.status == 0, done
    skipped = [task for task in done.json("compile-document-1")["tasks"] if task["skipped"]]
    assert [task["skipped"]["code"] for task in skipped] == ["env_not_granted"]
    plan = json.loads((tmp_path / "out/plan.json").read_text())
    assert [task["skipped"]["code"] for task in plan["tasks"] if task["skipped"]] == ["env_not_granted"]


def test_list_tasks(argo_harbor: Command, tmp_path: Path) -> None:
    done = argo_harbor("compile", "--harbor-dir", MIXED, "--list-tasks", "--json")
    tasks = done.json("task-list-document-1")["tasks"]
    assert [task["index"] for task in tasks] == list(range(len(tasks)))
    assert (
        argo_harbor("compile", "--harbor-dir", MIXED, "--list-tasks", "--tasks", "reward-*").stdout.count(
            "reward-"
        )
        > 3
    )
    assert not (tmp_path / "store").exists()


def test_overrides_and_canary_reach_the_plan(argo_harbor: Command, tmp_path: Path) -> None:
    done = argo_harbor(
        "compile",
        "--harbor-dir",
        MIXED,
        "--agent",
        "oracle",
        "-O",
        "spec.target.n_attempts=3",
        "--canary",
        "4",
        "-o",
        "out",
    )
    assert done.status == 0, done
    plan = json.loads((tmp_path / "out/plan.json").read_text())
    assert plan["n_attempts"] == 3
    assert len(plan["canary"]) >= 4
