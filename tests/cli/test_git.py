"""`--harbor-git` through the commands that take it."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.support.git_repos import GitServer, Repository, listening
from tests.support.program import Program

pytestmark = pytest.mark.remote


def test_tasks_are_listed_and_selected(
    argo_harbor: Command, repository: Repository, git_server: GitServer, tmp_path: Path
) -> None:
    source = f"{git_server.url('acme/Suite_A')}@main"
    for command in (("compile",), ("runs", "submit")):
        done = argo_harbor(*command, "--harbor-git", source, "--list-tasks", "--tasks", "2,*-0000", "--json")
        tasks = done.json("task-list-document-1")["tasks"]
        assert [(task["index"], task["name"]) for task in tasks] == [
            (0, "acme/task-0000"),
            (2, "acme/task-0002"),
        ]
    assert not (tmp_path / "store").exists()
    unknown = argo_harbor("compile", "--harbor-git", source, "--list-tasks", "--tasks", "task-00", "--json")
    assert (unknown.status, unknown.error["code"]) == (2, "unknown_tasks")
    assert "acme/task-0000" in unknown.error["hint"]


def test_compiling_records_the_commit(argo_harbor: Command, repository: Repository, tmp_path: Path) -> None:
    commit = repository.git("rev-parse", "HEAD")
    arguments = ("compile", "--agent", "oracle", "--tasks", "1")
    done = argo_harbor(*arguments, "--harbor-git", f"{repository.path}@main")
    assert done.status == 0, done.stderr
    plan = json.loads((tmp_path / "suite-a-compiled/plan.json").read_text())
    pinned = f"{repository.path}@{commit}"
    assert plan["taskset"]["source"] == f"{repository.path.name}@{commit}"
    assert f"Git source {pinned}" in done.stderr
    assert "verifier code that will run" in done.stderr
    repository.commit({"tasks/task-0001/instruction.md": "Something else.\n"})
    again = argo_harbor(*arguments, "--harbor-git", pinned, "-o", "again")
    assert again.stdout.splitlines()[-1] == done.stdout.splitlines()[-1]
    newer = argo_harbor(*arguments, "--harbor-git", f"{repository.path}@main", "-o", "newer")
    assert newer.stdout.splitlines()[-1] != done.stdout.splitlines()[-1]


def test_a_clone_in_another_place_compiles_to_the_same_bytes(
    argo_harbor: Command, repository: Repository, tmp_path: Path
) -> None:
    clone = tmp_path / "elsewhere" / repository.path.name
    repository.git("clone", "--quiet", ".", str(clone))
    files = []
    for number, path in enumerate((repository.path, clone)):
        output = tmp_path / f"out{number}"
        done = argo_harbor("compile", "--agent", "oracle", "--harbor-git", f"{path}@main", "-o", output)
        assert done.status == 0, done.stderr
        assert str(tmp_path) not in (output / "plan.json").read_text()
        files.append({file.relative_to(output): file.read_bytes() for file in output.rglob("*.*")})
    assert files[0] == files[1]


def test_errors_say_the_cure(argo_harbor: Command, repository: Repository) -> None:
    done = argo_harbor("compile", "--harbor-git", str(repository.path), "--agent", "oracle")
    assert done.status == 2
    assert f"hint: {repository.path}@main" in done.stderr
    secret = argo_harbor(
        "compile", "--harbor-git", "https://ada:hunter2@host.example/a/b@main", "--list-tasks"
    )
    assert secret.status == 2
    assert "hunter2" not in secret.stdout + secret.stderr


def test_an_interrupt_leaves_neither_folder_nor_process(git_settings: Path, tmp_path: Path) -> None:
    program = Program(tmp_path / "store", tmp_path)
    with listening() as server:
        source = f"git://127.0.0.1:{server.getsockname()[1]}/a/b@main"
        running = program.start("compile", "--harbor-git", source, "--list-tasks")
        server.settimeout(60)
        client, _ = server.accept()
        with client, client.makefile("rb") as asked:
            client.settimeout(60)
            assert asked.read(int(asked.read(4), 16) - 4).startswith(b"git-upload-pack /a/b")
            assert len(list((tmp_path / "tmp").iterdir())) == 1
            running.send_signal(signal.SIGINT)
            assert running.wait(60) == 130
            assert asked.read() == b"", "git has gone"
    assert list((tmp_path / "tmp").iterdir()) == []
    assert "Traceback" not in running.communicate()[1]
