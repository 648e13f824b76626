"""Repositories made to harm whoever reads them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.fixtures_git import refused
from tests.support.git_repos import GitServer, Repository
from tests.support.suites import make_suite

pytestmark = pytest.mark.remote


def test_links_out_of_the_suite_are_refused(repository: Repository, tmp_path: Path) -> None:
    make_suite(tmp_path / "private", tasks=1)
    tasks = repository.path / "tasks"
    (tasks / "out").symlink_to(tmp_path / "private/task-0000")
    (tasks / "up").symlink_to("../..")
    (tasks / "task-0000/chain").symlink_to(tmp_path / "private")
    (tasks / "chained").symlink_to("task-0000/chain/task-0000")
    (tasks / "task-0001/tests/secret").symlink_to("/etc/passwd")
    repository.commit()
    error = refused(f"{repository.path}@main")
    assert [item.file for item in error.items] == ["chained", "out", "up"]
    for name in ("out", "up", "chained"):
        (tasks / name).unlink()
    repository.commit()
    inner = refused(f"{repository.path}@main")
    assert [(item.code, item.file) for item in inner.items] == [
        ("invalid_task_config", "task-0001/tests/secret")
    ]


@pytest.mark.parametrize(
    "name", [b"..", b".", b".git", b".GIT", b"a/../../../b", b"", b"x" * 300], ids=lambda name: name[:9]
)
def test_forged_names_are_refused(repository: Repository, name: bytes, tmp_path: Path) -> None:
    blob = repository.blob(b"x")
    task = repository.git("rev-parse", "HEAD:tasks/task-0000")
    entries = {b"task.toml": ("100644", blob), name: ("100644", blob)}
    tasks = repository.tree({b"one": ("40000", repository.tree(entries)), b"two": ("40000", task)})
    repository.branch_of(repository.tree({b"tasks": ("40000", tasks)}), "forged")
    error = refused(f"{repository.path}@forged")
    assert error.code in {"source_unreadable", "source_unreachable"}
    assert not (tmp_path / "b").exists()


def test_names_that_stand_twice_are_refused(repository: Repository) -> None:
    blob = repository.blob(b"/etc")
    task = repository.git("rev-parse", "HEAD:tasks/task-0000")
    forged = repository.git(
        "hash-object", "-t", "tree", "-w", "--literally", "--stdin",
        given=b"120000 one\0" + bytes.fromhex(blob) + b"40000 one\0" + bytes.fromhex(task),
    )  # fmt: skip
    repository.branch_of(repository.tree({b"tasks": ("40000", forged)}), "forged")
    error = refused(f"{repository.path}@forged")
    assert [(item.code, item.file) for item in error.items] == [("source_unreadable", "one")]


@pytest.mark.parametrize("target", [b"", b"a\0b"])
def test_links_to_no_name_are_refused(repository: Repository, target: bytes) -> None:
    task = repository.tree(
        {b"link": ("120000", repository.blob(target)), b"task.toml": ("100644", repository.blob(b""))}
    )
    tasks = repository.tree({b"one": ("40000", task)})
    repository.branch_of(repository.tree({b"tasks": ("40000", tasks)}), "forged")
    error = refused(f"{repository.path}@forged")
    assert (error.code, error.items[0].file) == ("source_unreadable", "one/link")


def test_trees_without_end_are_refused(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = repository.tree({b"task.toml": ("100644", repository.blob(b""))})
    for _ in range(9):
        tree = repository.tree({f"d{number}".encode(): ("40000", tree) for number in range(10)})
    bomb = repository.tree({b"tasks": ("40000", tree)})
    repository.branch_of(bomb, "bomb")
    monkeypatch.setattr("argo_harbor.sources.git.tree.MAX_ENTRIES", 20_000)
    error = refused(f"{repository.path}@bomb")
    assert (error.code, "more than" in error.message) == ("source_unreadable", True)
    deep = repository.git("rev-parse", "HEAD:tasks/task-0000")
    monkeypatch.setattr("argo_harbor.sources.git.tree.MAX_DEPTH", 20)
    for _ in range(21):
        deep = repository.tree({b"d": ("40000", deep)})
    repository.branch_of(repository.tree({b"tasks": ("40000", deep)}), "deep")
    assert "folders deep" in refused(f"{repository.path}@deep").items[0].message


def test_large_tasks_are_refused_before_they_are_written(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit(
        {"tasks/task-0000/tests/zeros": bytes(3_000_000), "tasks/task-0001/tests/x": bytes(900)}
    )
    monkeypatch.setattr("argo_harbor.sources.git.files.MAX_FILE_BYTES", 2_000_000)
    assert [item.file for item in refused(f"{repository.path}@main").items] == ["task-0000/tests/zeros"]
    monkeypatch.setattr("argo_harbor.sources.git.files.MAX_TOTAL_BYTES", 1000)
    assert [item.file for item in refused(f"{repository.path}@main").items] == [
        "task-0000/tests/zeros", "task-0000", "task-0001",
    ]  # fmt: skip
    monkeypatch.setattr("argo_harbor.sources.git.tree.MAX_FILES", 7)
    assert [item.file for item in refused(f"{repository.path}@main").items] == ["task-0000", "task-0001"]


def test_a_repository_of_this_machine_starts_no_program(repository: Repository, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    blob = repository.git("rev-parse", "HEAD:tasks/task-0000/task.toml")
    (repository.path / ".git/objects" / blob[:2] / blob[2:]).unlink()
    for key, value in {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "evil",
        "remote.evil.promisor": "true",
        "remote.evil.url": f"ext::touch {ran}",
        "remote.evil.uploadpack": f"touch {ran};",
        "uploadpack.packObjectsHook": f"touch {ran};",
        "core.fsmonitor": f"touch {ran}",
        "core.sshCommand": f"touch {ran};",
        "core.alternateRefsCommand": f"touch {ran};",
    }.items():
        repository.git("config", key, value)
    for url in (f"ext::touch {ran}", f"file://{tmp_path}", f"ssh://localhost{tmp_path}"):
        repository.git("config", "remote.evil.url", url)
        error = refused(f"{repository.path}@main")
        assert error.code == "source_unreachable"
        assert "partial clone" in error.hint
        assert not ran.exists()


def test_a_damaged_repository(repository: Repository, git_server: GitServer) -> None:
    tree = repository.git("rev-parse", "HEAD:tasks")
    (repository.path / ".git/objects" / tree[:2] / tree[2:]).unlink()
    for address in (repository.path, git_server.url("acme/Suite_A")):
        assert refused(f"{address}@main").code == "source_unreachable"


def test_a_repository_of_somebody_else(repository: Repository, tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give a folder away")
    os.chown(repository.path, 12345, 12345)
    os.chown(repository.path / ".git", 12345, 12345)
    error = refused(f"{repository.path}@main")
    assert (error.code, "safe.directory" in error.hint) == ("source_unreachable", True)


def test_a_full_disk(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("argo_harbor.sources.git.source.write_files", full)
    error = refused(f"{repository.path}@main")
    assert (error.code, "TMPDIR" in error.hint) == ("source_unreachable", True)
