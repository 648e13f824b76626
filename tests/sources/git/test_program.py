"""The git program itself: absent, old, broken; and what its processes inherit."""

from __future__ import annotations

import os
import select
from pathlib import Path

import pytest

from argo_harbor.errors import PlatformError
from argo_harbor.sources.git.errors import GitFailed
from argo_harbor.sources.git.program import Git, environment, find_git


@pytest.mark.parametrize(
    ("script", "word"),
    [
        (None, "no git program on PATH"),
        ("echo git version 2.28.1", "git version 2.28.1"),
        ("echo hello", "hello"),
        ("exit 3", "does not run"),
    ],
)
def test_without_a_git_that_serves(
    script: str | None, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if script is not None:
        program = tmp_path / "git"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PlatformError) as caught:
        find_git()
    assert (caught.value.code, caught.value.exit_status) == ("git_not_found", 5)
    assert word in caught.value.message
    assert "install git" in caught.value.hint


def test_another_repository_of_the_environment_is_not_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    monkeypatch.setenv("GIT_SSH_COMMAND", "ssh -i key")
    found = environment(tmp_path, network=True)
    assert "GIT_DIR" not in found
    assert found["GIT_SSH_COMMAND"] == "ssh -i key"
    assert found["GIT_TERMINAL_PROMPT"] == "0"


def test_transports_are_those_that_we_and_the_user_allow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GIT_ALLOW_PROTOCOL", raising=False)
    assert environment(tmp_path, network=True)["GIT_ALLOW_PROTOCOL"] == "file:git:http:https:ssh"
    assert environment(tmp_path, network=False)["GIT_ALLOW_PROTOCOL"] == "none"
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "https:ext")
    assert environment(tmp_path, network=True)["GIT_ALLOW_PROTOCOL"] == "https"
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "")
    assert environment(tmp_path, network=True)["GIT_ALLOW_PROTOCOL"] == "none"


def test_a_command_that_is_not_read_to_its_end_is_ended(tmp_path: Path) -> None:
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\nsleep 1000 &\necho $!\nyes\n")
    program.chmod(0o755)
    git = Git(str(program), tmp_path, "nobody", lambda text: None)
    with git.stream("cat-file") as output:
        child = os.pidfd_open(int(output.readline()))
    ended, _, _ = select.select([child], [], [], 30)
    os.close(child)
    assert ended


def test_the_last_word_of_a_command_is_its_reason() -> None:
    failed = GitFailed(128, "Receiving objects: 1%\rremote: so\nfatal: not https://ada:x@host/\x1b[31m\n")
    assert failed.reason == "not https://host/\\x1b[31m"
    assert GitFailed(-11, "").reason == "it ended with status -11"
