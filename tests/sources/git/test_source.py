"""Suites in real repositories, served in every way that git has, come out as they were committed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from argo_harbor.errors import UsageError
from argo_harbor.sources.git.source import GitSource
from tests.support.fixtures_git import load, refused, same
from tests.support.git_repos import GitServer, Repository, files_over_http, git_daemon
from tests.support.suites import make_suite

pytestmark = pytest.mark.remote


def test_every_way_to_a_repository_gives_the_folder_as_it_is(
    repository: Repository, git_server: GitServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository.git("rev-parse", "HEAD")
    repository.git("clone", "--quiet", "--bare", ".", str(tmp_path / "served/acme/bare.git"))
    shell = tmp_path / "ssh"
    shell.write_text('#!/bin/sh\nshift $(($# - 1))\nexec sh -c "$1"\n')
    shell.chmod(0o755)
    monkeypatch.setenv("GIT_SSH", str(shell))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path / "served")
    path = repository.path
    here = (str(path), "./acme/Suite_A/.git", "~/served/acme/bare.git", "acme/bare", f"file://{path}/")
    with git_daemon(tmp_path / "served") as daemon:
        there = (
            git_server.url("acme/Suite_A/"), f"{daemon}/acme/Suite_A",
            f"git@example.invalid:{path}", f"ssh://git@example.invalid:22{path}",
        )  # fmt: skip
        for address in (*here, *there):
            found = load(f"{address}@main")
            assert same(found, path / "tasks"), address
            assert found.origin is not None
            assert found.origin.version == commit
            name = "bare" if "bare" in address else "Suite_A"
            kept = name if address in here else address.rstrip("/")
            assert found.name == name.lower().replace("_", "-")
            assert found.origin.pinned == f"{kept}@{commit}"
            last = found
        assert last.origin is not None
        assert load(last.origin.pinned) == last


def test_tags_branches_and_commits_are_recorded_as_commits(
    repository: Repository, git_server: GitServer
) -> None:
    first = repository.git("rev-parse", "HEAD")
    repository.git("tag", "--annotate", "--message=first", "v1.0")
    repository.git("tag", "--annotate", "--message=of a tag", "again", "v1.0")
    repository.git("update-ref", "refs/pull/12/head", "HEAD")
    repository.git("branch", "feature/x")
    second = repository.commit({"tasks/task-0000/instruction.md": "Something else.\n"})
    url = git_server.url("acme/Suite_A")
    tag_object = repository.git("rev-parse", "v1.0")
    old = load(f"{url}@{first}")
    assert old.origin is not None
    assert (old.origin.version, old.origin.label) == (first, f"acme/Suite_A@{first}")
    for ref in ("again", "feature/x", tag_object):
        assert load(f"{url}@{ref}") == old, ref
    assert load(f"{repository.path}@pull/12/head").digest == old.digest
    newer = load(f"{repository.path}@HEAD")
    assert newer.origin is not None
    assert newer.origin.version == second
    assert newer.digest != old.digest


def test_the_longest_ref_before_a_folder_is_taken(repository: Repository, git_server: GitServer) -> None:
    shutil.copytree(repository.path / "tasks", repository.path / "more/Hard ones")
    commit = repository.commit()
    repository.git("branch", "feature/x")
    repository.git("update-ref", "refs/pull/12/head", "HEAD")
    url = git_server.url("acme/Suite_A")
    for form in ("/tree/feature/x", "/-/tree/pull/12/head"):
        found = load(f"{url}{form}/more/Hard ones/")
        assert found.origin is not None
        assert found.origin.pinned == f"{url}/tree/{commit}/more/Hard ones"
        assert found.origin.label == f"acme/Suite_A/more/Hard ones@{commit}"
        assert found.name == "hard-ones"
        assert same(found, repository.path / "more/Hard ones")
    assert load(f"{repository.path}/tree/feature/x") == load(f"{repository.path}@feature/x")


def test_one_task_and_the_whole_repository_are_folders_too(
    git_settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository.make(tmp_path / "My.Repo")
    make_suite(repository.path, tasks=2, org="")
    repository.commit()
    whole = load(f"{repository.path}/tree/main/.")
    assert whole.name == "my.repo"
    assert same(whole, repository.path)
    assert whole.origin is not None
    assert whole.origin.name == "My.Repo/."
    monkeypatch.chdir(tmp_path)
    assert load(whole.origin.pinned) == whole
    task = load(f"{repository.path}/tree/main/task-0001")
    assert (task.name, [found.name for found in task]) == ("task-0001", ["task-0001"])
    assert same(task, repository.path / "task-0001")
    single = Repository.make(tmp_path / "One_Task")
    make_suite(tmp_path / "made", tasks=1, org="")
    shutil.copytree(tmp_path / "made/task-0000", single.path, dirs_exist_ok=True)
    single.commit()
    alone = load(f"{single.path}/tree/main/.")
    assert [found.name for found in alone] == ["One_Task"]
    assert same(alone, single.path)


def test_only_the_folder_of_one_commit_is_fetched(repository: Repository, git_server: GitServer) -> None:
    for number in range(4):
        repository.commit({"data/large.bin": os.urandom(1 << 20), "tasks/task-0000/README.md": f"{number}\n"})
    repository.git("config", "uploadpack.allowFilter", "true")
    assert same(load(f"{git_server.url('acme/Suite_A')}@main"), repository.path / "tasks")
    assert git_server.sent < 20_000
    assert len([request for request in git_server.requests if request.startswith("POST")]) <= 5
    repository.git("config", "uploadpack.allowFilter", "false")
    git_server.sent = 0
    assert same(load(f"{git_server.url('acme/Suite_A')}@main"), repository.path / "tasks")
    assert 1 << 20 < git_server.sent < 2 << 20, "a server without filters sends one commit and no history"


def test_a_server_that_refuses_the_filter_it_announces(repository: Repository, git_server: GitServer) -> None:
    repository.git("config", "uploadpack.allowFilter", "true")
    repository.git("config", "uploadpackfilter.allow", "false")
    assert same(load(f"{git_server.url('acme/Suite_A')}@main"), repository.path / "tasks")


def test_a_server_that_gives_no_single_commits(repository: Repository, git_server: GitServer) -> None:
    first = repository.git("rev-parse", "HEAD")
    repository.commit({"tasks/task-0000/README.md": "newer\n"})
    git_server.old = True
    said: list[str] = []
    found = load(f"{git_server.url('acme/Suite_A')}@{first}", said)
    assert found.origin is not None
    assert found.origin.version == first
    assert any("all branches and tags" in line for line in said)
    absent = refused(f"{git_server.url('acme/Suite_A')}@{'0' * 40}")
    assert absent.code == "unknown_source_ref"


def test_a_server_of_plain_files(repository: Repository, tmp_path: Path) -> None:
    first = repository.git("rev-parse", "HEAD")
    repository.commit({"tasks/task-0000/README.md": "newer\n"})
    repository.git("update-server-info")
    with files_over_http(tmp_path / "served") as url:
        assert same(load(f"{url}/acme/Suite_A/.git@main"), repository.path / "tasks")
        old = load(f"{url}/acme/Suite_A/.git@{first}")
    assert old.origin is not None
    assert old.origin.version == first


def test_a_repository_with_longer_ids(git_settings: Path, tmp_path: Path) -> None:
    repository = Repository.make(tmp_path / "long", kind="sha256")
    make_suite(repository.path / "tasks", tasks=1)
    commit = repository.commit()
    assert len(commit) == 64
    for ref in ("main", commit):
        found = load(f"{repository.path}@{ref}")
        assert found.origin is not None
        assert found.origin.version == commit


def test_it_says_what_it_reads_and_what_will_run(repository: Repository) -> None:
    said: list[str] = []
    found = load(f"{repository.path}@main", said)
    assert found.origin is not None
    assert said[0] == f"Git source {repository.path}@{found.origin.version}"
    assert "code that will run" in said[-1]


def test_listing_and_selecting(repository: Repository) -> None:
    source = GitSource(f"{repository.path}@main")
    listing = source.list("1,task-0002")
    assert [(index, member.folder) for index, member in listing.tasks] == [(1, "task-0001"), (2, "task-0002")]
    assert (listing.total, listing.ref) == (3, load(f"{repository.path}@main").ref)
    assert [task.index for task in source.load("*-0001")] == [1]
    with pytest.raises(UsageError, match="task-00010"):
        source.list("task-00010")


def test_nothing_is_left_but_the_files(repository: Repository, tmp_path: Path) -> None:
    assert load(f"{repository.path}@main").tasks[0].root is not None
    (left,) = (tmp_path / "tmp").iterdir()
    assert [path.name for path in left.iterdir()] == ["suite"]
    refused(f"{repository.path}/tree/main/absent")
    assert [path.name for path in (tmp_path / "tmp").iterdir()] == [left.name]
