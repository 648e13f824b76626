"""What `--harbor-git` names is not there: the error shows what is."""

from __future__ import annotations

import pytest

from tests.support.fixtures_git import refused
from tests.support.git_repos import GitServer, Repository
from tests.support.suites import make_suite

pytestmark = pytest.mark.remote


def test_an_unknown_ref_names_near_ones(repository: Repository, git_server: GitServer) -> None:
    for name in ("v1.0", "v1.1", "feature/one"):
        repository.git("tag", name)
    url = git_server.url("acme/Suite_A")
    for text, word in (
        (f"{url}@v1.2", "v1.1"),
        (f"{url}/tree/feature/two/tasks", "feature/one"),
        (f"{url}@{'a' * 40}", "full id"),
    ):
        error = refused(text)
        assert (error.code, error.exit_status) == ("unknown_source_ref", 2)
        assert word in error.hint, text


def test_without_a_ref_the_default_branch_is_shown(repository: Repository, git_server: GitServer) -> None:
    repository.git("branch", "--move", "trunk")
    for text in (
        git_server.url("acme/Suite_A"),
        f"{repository.path}",
        f"{repository.path}@",
        f"{git_server.url('acme/Suite_A')}/tree/",
    ):
        error = refused(text)
        assert (error.code, error.exit_status) == ("unknown_flag_value", 2)
        assert f"{text.removesuffix('@').removesuffix('/tree/')}@trunk" in error.hint
    absent = refused(git_server.url("acme/absent"))
    assert (absent.code, "URL@REF" in absent.hint) == ("unknown_flag_value", True)


def test_a_missing_folder_names_those_with_tasks(repository: Repository) -> None:
    repository.git("mv", "tasks", "benchmarks")
    make_suite(repository.path / "extra/tasks", tasks=1)
    repository.commit()
    error = refused(f"{repository.path}@main")
    assert error.code == "unknown_source_ref"
    assert f"{repository.path}/tree/main/extra/tasks" in error.hint
    assert "benchmarks (3)" in error.hint
    near = refused(f"{repository.path}/tree/main/benchmark")
    assert f"{repository.path}/tree/main/benchmarks" in near.hint


def test_what_is_no_folder_of_tasks(repository: Repository) -> None:
    (repository.path / "link").symlink_to("tasks")
    commit = repository.commit({"docs/index.md": "x"})
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},module")
    repository.git("commit", "--quiet", "--message=module")
    base = f"{repository.path}/tree/main"
    for folder, code, word in (
        ("README.md", "unknown_source_ref", "is a file"),
        ("link", "unknown_source_ref", "is a link"),
        ("module", "unknown_source_ref", "is a submodule"),
        ("docs", "no_tasks_selected", "holds no task"),
        ("tasks/../tasks", "unknown_flag_value", "is no folder"),
    ):
        error = refused(f"{base}/{folder}")
        assert error.code == code
        assert word in error.message
    empty = Repository.make(repository.path.parent / "empty")
    empty.commit({"a": "b"})
    assert "no folder of it holds tasks" in refused(f"{empty.path}@main").hint


def test_objects_that_are_no_commit(repository: Repository) -> None:
    tree = repository.git("rev-parse", "HEAD^{tree}")
    repository.git("tag", "of-a-tree", tree)
    for ref in (tree, "of-a-tree"):
        assert refused(f"{repository.path}@{ref}").code == "unknown_source_ref"
