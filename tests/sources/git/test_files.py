"""What stands in the commit decides, whatever attributes, settings and places of a file would make of it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from argo_harbor.sources.directory import read_directory
from tests.support.fixtures_git import load, refused, same
from tests.support.git_repos import Repository
from tests.support.suites import make_suite

pytestmark = pytest.mark.remote


def test_attributes_change_nothing_and_no_filter_runs(
    repository: Repository, git_settings: Path, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    git_settings.write_text(
        f'[filter "evil"]\n\tsmudge = touch {ran}\n\tprocess = touch {ran}\n\trequired = true\n'
        f"[core]\n\tautocrlf = true\n\thooksPath = {tmp_path}/hooks\n\tfsmonitor = touch {ran}\n"
    )
    (tmp_path / "hooks").mkdir()
    for hook in ("reference-transaction", "post-checkout", "post-index-change"):
        (tmp_path / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {ran}\n")
        (tmp_path / "hooks" / hook).chmod(0o755)
    before = read_directory(repository.path / "tasks")
    task = "tasks/task-0000"
    content = {
        f"{task}/tests/id.txt": b"$Id$ $Format:%H$\n",
        f"{task}/tests/crlf.txt": b"a\r\nb\n",
        f"{task}/tests/wide.txt": "wide\n".encode("utf-16"),
    }
    repository.commit(content)
    attributes = (
        "* filter=evil ident export-subst\n*.txt text eol=crlf\nwide.txt working-tree-encoding=UTF-16\n"
    )
    repository.commit({".gitattributes": attributes, f"{task}/.gitattributes": "tests export-ignore\n"})
    (repository.path / ".git/hooks").mkdir(exist_ok=True)
    for hook in (tmp_path / "hooks").iterdir():
        shutil.copy(hook, repository.path / ".git/hooks")
    found = load(f"{repository.path}@main")
    assert same(found, repository.path / "tasks")
    assert found.digest != before.digest
    root = found.tasks[0].root
    assert root is not None
    for name, data in content.items():
        assert (root / name.removeprefix(f"{task}/")).read_bytes() == data
    assert not ran.exists()


def test_modes_and_inner_links_are_kept(repository: Repository) -> None:
    tests = repository.path / "tasks/task-0000/tests"
    (tests / "again.sh").symlink_to("test.sh")
    (tests / "plain").write_text("plain")
    repository.commit()
    found = load(f"{repository.path}@main")
    assert same(found, repository.path / "tasks")
    modes = {file.path: file.mode for file in found.tasks[0].files}
    assert (modes["tests/test.sh"], modes["tests/plain"]) == (0o755, 0o644)
    assert found.tasks[0].root is not None
    assert os.readlink(found.tasks[0].root / "tests/again.sh") == "test.sh"


def test_odd_names_are_kept_or_refused_as_in_a_folder(repository: Repository) -> None:
    tests = repository.path / "tasks/task-0000/tests"
    for name in ("line\nbreak", "ünïcödé", "-rf", "tab\t", '"quote"', "*"):
        (tests / name).write_text(name)
    repository.commit()
    assert same(load(f"{repository.path}@main"), repository.path / "tasks")
    (tests / os.fsdecode(b"\xff")).write_text("x")
    repository.commit()
    error = refused(f"{repository.path}@main")
    assert "not UTF-8" in error.message


def test_what_stands_beside_the_tasks(repository: Repository) -> None:
    (repository.path / "tasks/linked").symlink_to("shared/one")
    make_suite(repository.path / "other", tasks=1, org="more")
    shutil.copytree(repository.path / "other/task-0000", repository.path / "tasks/shared/one")
    repository.commit({"tasks/.hidden/task.toml": "broken", "tasks/notes/a.txt": "x", "tasks/README.md": "x"})
    found = load(f"{repository.path}@main")
    assert same(found, repository.path / "tasks")
    assert [task.folder for task in found][-1] == "linked"
    assert sorted(warned.file for warned in found.warnings) == ["notes", "shared"]


def test_a_metric_script_is_refused(repository: Repository) -> None:
    repository.commit({"tasks/dataset.toml": "", "tasks/metric.py": "print(1)"})
    assert refused(f"{repository.path}@main").code == "metric_script_unsupported"


def test_lfs_pointers_are_refused_each(repository: Repository) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 12\n"
    repository.commit(
        {
            "tasks/task-0000/tests/data.bin": pointer,
            "tasks/task-0002/environment/model.bin": pointer,
            "tasks/task-0002/notes.bin": pointer,
            "tasks/task-0001/tests/about.txt": f"# {pointer}",
            "tasks/task-0001/tests/long.txt": pointer + "x" * 2000,
            "picture.png": pointer,
        }
    )
    error = refused(f"{repository.path}@main")
    assert (error.code, error.exit_status) == ("lfs_pointer", 3)
    assert [(item.task, item.file, item.code) for item in error.items] == [
        ("acme/task-0000", "task-0000/tests/data.bin", "lfs_pointer"),
        ("acme/task-0002", "task-0002/environment/model.bin", "lfs_pointer"),
    ]
    assert "git lfs pull" in error.hint
    repository.commit({"tasks/task-0000/task.toml": pointer})
    broken = refused(f"{repository.path}@main")
    assert (broken.items[0].task, broken.items[0].code) == ("task-0000", "lfs_pointer")
    assert "invalid_task_config" in {item.code for item in broken.items}
    alone = refused(f"{repository.path}/tree/main/tasks/task-0000")
    assert [item.file for item in alone.items][:2] == ["task.toml", "tests/data.bin"]


def test_submodules_are_named(repository: Repository) -> None:
    commit = repository.commit()

    def submodule(path: str) -> None:
        repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},{path}")
        repository.git("commit", "--quiet", "--message=module")

    submodule("tasks/module")
    submodule("tasks/task-0001/docs")
    found = load(f"{repository.path}@main")
    assert [(warned.code, warned.file) for warned in found.warnings] == [("not_a_task", "module")]
    submodule("tasks/task-0001/tests/vendor")
    error = refused(f"{repository.path}@main")
    assert (error.code, error.items[0].task) == ("invalid_task_config", "task-0001")
    assert "tests/vendor: is a submodule" in error.message
    alone = refused(f"{repository.path}/tree/main/tasks/task-0001")
    assert alone.items[0].file == "tests/vendor"
