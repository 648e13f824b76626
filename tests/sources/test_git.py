"""Suites in real repositories, served in every way that git has, come out as they were committed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from argo_harbor.errors import HarborError, PlatformError, UsageError
from argo_harbor.model.taskset import Taskset
from argo_harbor.sources import git_program
from argo_harbor.sources.directory import read_directory
from argo_harbor.sources.git import GitSource
from tests.support.git_repos import GitServer, Repository, git_daemon, git_over_http, listening
from tests.support.suites import make_suite

HELPER = '[credential]\n\thelper = "!f() { echo username=ada; echo password=secret-word; }; f"\n'


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own git configuration, empty, and a folder for temporary files."""
    path = tmp_path / "gitconfig"
    path.touch()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(path))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return path


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """`Suite_A` with three tasks in `tasks`, one commit."""
    made = Repository.make(tmp_path / "served/acme/Suite_A")
    make_suite(made.path / "tasks", tasks=3)
    made.commit({"README.md": "# Suite\n"})
    return made


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    with git_over_http(tmp_path / "served") as served:
        yield served


def load(text: object, said: list[str] | None = None) -> Taskset:
    return GitSource(str(text), say=(said if said is not None else []).append).load()


def refused(text: object) -> HarborError:
    with pytest.raises(HarborError) as caught:
        load(text)
    return caught.value


def same(found: Taskset, folder: Path) -> bool:
    """Whether a suite has exactly the content of a folder of this machine, modes included."""
    plain = read_directory(folder)
    return found.members == plain.members and [t.files for t in found] == [t.files for t in plain]


def test_every_way_to_a_repository_gives_the_folder_as_it_is(
    repository: Repository, server: GitServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    with git_daemon(tmp_path / "served") as daemon:
        for address in (
            str(path), "acme/Suite_A", "./acme/Suite_A/.git", "~/served/acme/bare.git", "acme/bare",
            f"file://{path}", f"file://{path}/", server.url("acme/Suite_A/"), server.url("acme/bare.git"),
            f"{daemon}/acme/Suite_A", f"git@example.invalid:{path}", f"ssh://git@example.invalid:22{path}",
        ):  # fmt: skip
            found = load(f"{address}@main")
            assert same(found, path / "tasks"), address
            assert found.name == ("bare" if "bare" in address else "suite-a")
            assert found.origin is not None
            assert found.origin.version == commit
            assert found.origin.pinned == f"{address.rstrip('/')}@{commit}"
            assert load(found.origin.pinned) == found


def test_tags_branches_and_commits_are_recorded_as_commits(repository: Repository, server: GitServer) -> None:
    first = repository.git("rev-parse", "HEAD")
    repository.git("tag", "light")
    repository.git("tag", "--annotate", "--message=first", "v1.0")
    repository.git("tag", "--annotate", "--message=of a tag", "again", "v1.0")
    repository.git("update-ref", "refs/pull/12/head", "HEAD")
    repository.git("branch", "feature/x")
    second = repository.commit({"tasks/task-0000/instruction.md": "Something else.\n"})
    url = server.url("acme/Suite_A")
    tag_object = repository.git("rev-parse", "v1.0")
    for ref in ("light", "v1.0", "again", "feature/x", "refs/tags/v1.0", "pull/12/head", first, first[:12]):
        found = load(f"{url}@{ref}")
        assert found.origin is not None
        assert (found.origin.version, found.origin.label) == (first, f"acme/Suite_A@{first}")
    assert load(f"{url}@{tag_object}").origin == found.origin
    for ref in ("main", "HEAD", second):
        newer = load(f"{url}@{ref}")
        assert newer.origin is not None
        assert newer.origin.version == second
        assert newer.digest != found.digest


def test_the_longest_ref_before_a_folder_is_taken(repository: Repository, server: GitServer) -> None:
    shutil.copytree(repository.path / "tasks", repository.path / "more/Hard ones")
    commit = repository.commit()
    repository.git("branch", "feature/x")
    repository.git("update-ref", "refs/pull/12/head", "HEAD")
    url = server.url("acme/Suite_A")
    for ref in ("main", "feature/x", "HEAD", "pull/12/head", commit):
        for form in (f"{url}/tree/{ref}/more/Hard ones", f"{url}/-/tree/{ref}/more/Hard ones/"):
            found = load(form)
            assert found.origin is not None
            assert found.origin.pinned == f"{url}/tree/{commit}/more/Hard ones"
            assert found.origin.label == f"acme/Suite_A/more/Hard ones@{commit}"
            assert found.name == "hard-ones"
            assert same(found, repository.path / "more/Hard ones")
        assert load(f"{url}/tree/{ref}") == load(f"{url}@{ref}")


def test_one_task_and_the_whole_repository_are_folders_too(tmp_path: Path) -> None:
    repository = Repository.make(tmp_path / "My.Repo")
    make_suite(repository.path, tasks=2, org="")
    repository.commit()
    whole = load(f"{repository.path}/tree/main/.")
    assert whole.name == "my.repo"
    assert same(whole, repository.path)
    assert whole.origin is not None
    assert load(whole.origin.pinned) == whole
    task = load(f"{repository.path}/tree/main/task-0001")
    assert (task.name, [found.name for found in task]) == ("task-0001", ["task-0001"])
    assert same(task, repository.path / "task-0001")


def test_only_the_folder_of_one_commit_is_fetched(repository: Repository, server: GitServer) -> None:
    for number in range(4):
        repository.commit({"data/large.bin": os.urandom(1 << 20), "tasks/task-0000/README.md": f"{number}\n"})
    repository.git("config", "uploadpack.allowFilter", "true")
    assert same(load(f"{server.url('acme/Suite_A')}@main"), repository.path / "tasks")
    assert server.sent < 20_000
    assert len([request for request in server.requests if request.startswith("POST")]) <= 5
    repository.git("config", "uploadpack.allowFilter", "false")
    server.sent = 0
    assert same(load(f"{server.url('acme/Suite_A')}@main"), repository.path / "tasks")
    assert 1 << 20 < server.sent < 2 << 20, "a server without filters sends one commit and no history"


def test_a_server_that_refuses_the_filter_it_announces(repository: Repository, server: GitServer) -> None:
    repository.git("config", "uploadpack.allowFilter", "true")
    repository.git("config", "uploadpackfilter.allow", "false")
    assert same(load(f"{server.url('acme/Suite_A')}@main"), repository.path / "tasks")


def test_a_server_that_gives_no_single_commits(repository: Repository, server: GitServer) -> None:
    first = repository.git("rev-parse", "HEAD")
    repository.commit({"tasks/task-0000/README.md": "newer\n"})
    server.old = True
    said: list[str] = []
    found = load(f"{server.url('acme/Suite_A')}@{first}", said)
    assert found.origin is not None
    assert found.origin.version == first
    assert any("all branches and tags" in line for line in said)
    absent = refused(f"{server.url('acme/Suite_A')}@{'0' * 40}")
    assert absent.code == "unknown_source_ref"


def test_a_repository_with_longer_ids(tmp_path: Path) -> None:
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
    assert said[0] == f"Git source {found.origin.pinned}"
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


# What is asked for is not there


def test_an_unknown_ref_names_near_ones(repository: Repository, server: GitServer) -> None:
    for name in ("v1.0", "v1.1", "feature/one"):
        repository.git("tag", name)
    url = server.url("acme/Suite_A")
    for text, word in (
        (f"{url}@v1.2", "v1.1"),
        (f"{url}@feature/on", "feature/one"),
        (f"{url}/tree/feature/two/tasks", "feature/one"),
        (f"{url}@zzz", "4 branches and tags"),
        (f"{url}@abcdef0", "full id"),
        (f"{url}@{'a' * 40}", "full id"),
    ):
        error = refused(text)
        assert (error.code, error.exit_status) == ("unknown_source_ref", 2)
        assert word in error.hint, text


def test_without_a_ref_the_default_branch_is_shown(repository: Repository, server: GitServer) -> None:
    repository.git("branch", "--move", "trunk")
    for text in (
        server.url("acme/Suite_A"),
        f"{repository.path}",
        f"{repository.path}@",
        f"{server.url('acme/Suite_A')}/tree/",
    ):
        error = refused(text)
        assert (error.code, error.exit_status) == ("unknown_flag_value", 2)
        assert f"{text.removesuffix('@').removesuffix('/tree/')}@trunk" in error.hint
    absent = refused(server.url("acme/absent"))
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


# Servers that do not let us in, or do not answer


def test_a_helper_of_git_gives_the_password(
    repository: Repository, server: GitServer, settings: Path
) -> None:
    server.login = ("ada", "secret-word")
    url = server.url("acme/Suite_A")
    error = refused(f"{url}@main")
    assert (error.code, error.exit_status) == ("source_unreachable", 5)
    assert "credential helper" in error.hint
    settings.write_text(HELPER)
    found = load(f"{url}@main")
    assert same(found, repository.path / "tasks")
    assert found.origin is not None
    assert "secret-word" not in found.origin.pinned


def test_a_user_name_is_used_and_never_shown(
    repository: Repository, server: GitServer, settings: Path
) -> None:
    server.login = ("token", "")
    said: list[str] = []
    settings.write_text('[credential]\n\thelper = "!f() { echo password=; }; f"\n')
    found = load(f"{server.url('acme/Suite_A', user='token@')}@main", said)
    assert found.origin is not None
    assert found.origin.pinned.startswith(server.url("acme/Suite_A"))
    assert "token" not in "".join(said)
    server.login = ("other", "")
    assert "token" not in str(refused(f"{server.url('acme/Suite_A', user='token@')}@main").as_json())


def test_settings_of_the_user_hold(repository: Repository, server: GitServer, settings: Path) -> None:
    settings.write_text(f'[url "{server.url("")}"]\n\tinsteadOf = https://short.invalid/\n')
    found = load("https://short.invalid/acme/Suite_A@main")
    assert found.origin is not None
    assert found.origin.pinned.startswith("https://short.invalid/acme/Suite_A@")


def test_nobody_there(repository: Repository, server: GitServer) -> None:
    with listening() as socket:
        port = socket.getsockname()[1]
    for text, word in (
        (f"http://127.0.0.1:{port}/a/b@main", "cannot read"),
        (f"git://127.0.0.1:{port}/a/b@main", "cannot read"),
        (f"{server.url('acme/absent')}@main", "there is no repository"),
    ):
        error = refused(text)
        assert (error.code, error.exit_status) == ("source_unreachable", 5)
        assert word in error.message


def test_a_silent_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_program, "PATIENCE", 0.4)
    monkeypatch.setattr(git_program, "SAY_EVERY", 0.1)
    said: list[str] = []
    with listening() as socket:
        address = f"127.0.0.1:{socket.getsockname()[1]}"
        with pytest.raises(PlatformError, match="gave up") as caught:
            load(f"git://{address}/a/b@main", said)
    assert caught.value.code == "source_unreachable"
    assert f"Waiting for git://{address}/a/b" in said[0]


def test_a_server_that_sends_without_end(
    repository: Repository, server: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"tasks/task-0000/tests/data": os.urandom(3 << 20)})
    monkeypatch.setattr(git_program, "_POLL", 0.001)
    monkeypatch.setattr(git_program, "MAX_DOWNLOAD_BYTES", 1 << 20)
    assert "more than a suite may hold" in refused(f"{server.url('acme/Suite_A')}@main").message


# Contents


def test_attributes_change_nothing_and_no_filter_runs(
    repository: Repository, settings: Path, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    settings.write_text(
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


# Hostile repositories


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


def test_trees_without_end_are_refused(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = repository.tree({b"task.toml": ("100644", repository.blob(b""))})
    for _ in range(9):
        tree = repository.tree({f"d{number}".encode(): ("40000", tree) for number in range(10)})
    bomb = repository.tree({b"tasks": ("40000", tree)})
    repository.branch_of(bomb, "bomb")
    monkeypatch.setattr("argo_harbor.sources.git_tree.MAX_ENTRIES", 20_000)
    error = refused(f"{repository.path}@bomb")
    assert (error.code, "more than" in error.message) == ("source_unreadable", True)
    deep = repository.git("rev-parse", "HEAD:tasks/task-0000")
    for _ in range(300):
        deep = repository.tree({b"d": ("40000", deep)})
    repository.branch_of(repository.tree({b"tasks": ("40000", deep)}), "deep")
    assert "folders deep" in refused(f"{repository.path}@deep").items[0].message


def test_large_tasks_are_refused_before_they_are_written(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit(
        {"tasks/task-0000/tests/zeros": bytes(3_000_000), "tasks/task-0001/tests/x": bytes(900)}
    )
    monkeypatch.setattr("argo_harbor.sources.git_files.MAX_FILE_BYTES", 2_000_000)
    assert [item.file for item in refused(f"{repository.path}@main").items] == ["task-0000/tests/zeros"]
    monkeypatch.setattr("argo_harbor.sources.git_files.MAX_TOTAL_BYTES", 1000)
    assert [item.file for item in refused(f"{repository.path}@main").items] == [
        "task-0000/tests/zeros", "task-0000", "task-0001",
    ]  # fmt: skip
    monkeypatch.setattr("argo_harbor.sources.git_tree.MAX_FILES", 7)
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
        assert not ran.exists()


def test_a_damaged_repository(repository: Repository, server: GitServer) -> None:
    tree = repository.git("rev-parse", "HEAD:tasks")
    (repository.path / ".git/objects" / tree[:2] / tree[2:]).unlink()
    for address in (repository.path, server.url("acme/Suite_A")):
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

    monkeypatch.setattr("argo_harbor.sources.git.write_files", full)
    error = refused(f"{repository.path}@main")
    assert (error.code, "TMPDIR" in error.hint) == ("source_unreachable", True)
