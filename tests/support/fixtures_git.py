"""A Git repository with a suite, and a server of it, for tests that read one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from argo_harbor.errors import HarborError
from argo_harbor.model.taskset import Taskset
from argo_harbor.sources.directory import read_directory
from argo_harbor.sources.git.source import GitSource
from tests.support.git_repos import GitServer, Repository, git_over_http
from tests.support.suites import make_suite


@pytest.fixture
def git_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own git configuration, empty, and `tmp` as the folder of temporary files."""
    path = tmp_path / "gitconfig"
    path.touch()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(path))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    return path


@pytest.fixture(scope="session")
def _made_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Repository.make(tmp_path_factory.mktemp("repository") / "Suite_A")
    make_suite(made.path / "tasks", tasks=3)
    made.commit({"README.md": "# Suite\n"})
    return made.path


@pytest.fixture
def repository(_made_repository: Path, tmp_path: Path, git_settings: Path) -> Repository:
    """`served/acme/Suite_A` with three tasks in `tasks`, one commit."""
    # Copied, because making it takes ten processes.
    return Repository(shutil.copytree(_made_repository, tmp_path / "served/acme/Suite_A", symlinks=True))


@pytest.fixture
def git_server(tmp_path: Path) -> Iterator[GitServer]:
    """Serves what is below `served`."""
    with git_over_http(tmp_path / "served") as served:
        yield served


def load(text: object, said: list[str] | None = None) -> Taskset:
    """The suite that `--harbor-git` names; what is told to people is added to `said`."""
    return GitSource(str(text), say=(said if said is not None else []).append).load()


def refused(text: object) -> HarborError:
    """The error that reading ends with."""
    with pytest.raises(HarborError) as caught:
        load(text)
    return caught.value


def same(found: Taskset, folder: Path) -> bool:
    """Whether a suite has exactly the content of a folder of this machine, modes included."""
    plain = read_directory(folder)
    return found.members == plain.members and [t.files for t in found] == [t.files for t in plain]
