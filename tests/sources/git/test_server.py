"""Servers that ask who we are, do not answer, or send without end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from argo_harbor.errors import PlatformError, UsageError
from argo_harbor.sources.git import program as git_program
from argo_harbor.sources.git.source import GitSource
from tests.support.fixtures_git import load, refused, same
from tests.support.git_repos import GitServer, Repository, listening

pytestmark = pytest.mark.remote

HELPER = '[credential]\n\thelper = "!f() { echo username=ada; echo password=secret-word; }; f"\n'


def test_a_helper_of_git_gives_the_password(
    repository: Repository, git_server: GitServer, git_settings: Path
) -> None:
    git_server.login = ("ada", "secret-word")
    url = git_server.url("acme/Suite_A")
    error = refused(f"{url}@main")
    assert (error.code, error.exit_status) == ("source_unreachable", 5)
    assert "credential helper" in error.hint
    git_settings.write_text(HELPER)
    found = load(f"{url}@main")
    assert same(found, repository.path / "tasks")
    assert found.origin is not None
    assert "secret-word" not in found.origin.pinned


def test_a_user_name_is_used_and_never_shown(
    repository: Repository, git_server: GitServer, git_settings: Path
) -> None:
    git_server.login = ("token", "")
    said: list[str] = []
    git_settings.write_text('[credential]\n\thelper = "!f() { echo password=; }; f"\n')
    found = load(f"{git_server.url('acme/Suite_A', user='token@')}@main", said)
    assert found.origin is not None
    assert found.origin.pinned.startswith(git_server.url("acme/Suite_A"))
    assert "token" not in "".join(said)
    git_server.login = ("other", "")
    assert "token" not in str(refused(f"{git_server.url('acme/Suite_A', user='token@')}@main").as_json())


def test_settings_of_the_user_hold(repository: Repository, git_server: GitServer, git_settings: Path) -> None:
    git_settings.write_text(f'[url "{git_server.url("")}"]\n\tinsteadOf = https://short.invalid/\n')
    found = load("https://short.invalid/acme/Suite_A@main")
    assert found.origin is not None
    assert found.origin.pinned.startswith("https://short.invalid/acme/Suite_A@")


def test_nobody_there(
    repository: Repository, git_server: GitServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listening() as socket:
        port = socket.getsockname()[1]
    for text, word in (
        (f"http://127.0.0.1:{port}/a/b@main", "cannot read"),
        (f"git://127.0.0.1:{port}/a/b@main", "cannot read"),
        (f"{git_server.url('acme/absent')}@main", "there is no repository"),
    ):
        error = refused(text)
        assert (error.code, error.exit_status) == ("source_unreachable", 5)
        assert word in error.message
    monkeypatch.setenv("GIT_SSH", str(tmp_path / "absent"))
    assert "cannot start what it needs" in refused("git@example.invalid:a/b@main").message


def test_a_silent_server_is_given_up(git_settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_program, "SAY_EVERY", 0.1)
    said: list[str] = []
    with listening() as socket:
        url = f"git://127.0.0.1:{socket.getsockname()[1]}/a/b"
        with pytest.raises(PlatformError, match="gave up") as caught:
            GitSource(f"{url}@main", say=said.append, patience=0.4).load()
        assert caught.value.code == "source_unreachable"
        assert f"Waiting for {url}" in said[0]
        with pytest.raises(UsageError) as without:
            GitSource(url, say=said.append, patience=0.4).load()
    assert "URL@REF" in without.value.hint
    assert "did not name its default branch" in said[-1]


def test_a_server_that_sends_without_end(
    repository: Repository, git_server: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"tasks/task-0000/tests/data": os.urandom(3 << 20)})
    monkeypatch.setattr(git_program, "_POLL", 0.001)
    monkeypatch.setattr(git_program, "MAX_DOWNLOAD_BYTES", 1 << 20)
    assert "more than a suite may hold" in refused(f"{git_server.url('acme/Suite_A')}@main").message
