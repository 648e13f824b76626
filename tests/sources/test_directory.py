"""Reading suites from folders: members, names, order, digests, and every finding at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from argo_harbor.errors import Finding, Refused, UsageError
from argo_harbor.sources import load_taskset
from argo_harbor.sources.directory import read_directory, taskset_name
from tests.sources.conftest import WriteTask
from tests.support.suites import make_suite


def refused(path: Path) -> tuple[Finding, ...]:
    with pytest.raises(Refused) as caught:
        read_directory(path)
    assert caught.value.exit_status == 3
    assert all(item.message and item.hint and item.code for item in caught.value.items)
    return caught.value.items


def test_a_suite_is_read_whole(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "My_Suite", tasks=5, separate_every=2, steps_every=5)
    taskset = load_taskset(suite)
    assert taskset.name == "my-suite"
    assert [task.index for task in taskset] == [0, 1, 2, 3, 4]
    assert taskset.total == len(taskset) == 5
    first = taskset.tasks[0]
    assert first.name == "acme/task-0000"
    assert first.short_name == first.folder == "task-0000"
    assert [file.path for file in first.files] == sorted(file.path for file in first.files)
    assert first.agent_image.kind == "dockerfile"
    assert first.agent_image.bases == ("ubuntu:24.04",)
    assert first.agent_image.workdir == "/app"
    assert first.root == (suite / "task-0000").resolve()
    assert [step.name for step in taskset.tasks[4].steps] == ["first", "second"]
    assert taskset.warnings == ()


def test_a_folder_with_a_task_toml_is_one_task(write_task: WriteTask) -> None:
    root = write_task("hello")
    taskset = read_directory(root)
    assert [task.name for task in taskset] == ["hello"]
    assert taskset.name == "hello"


def test_findings_of_a_single_task_name_its_own_files(write_task: WriteTask) -> None:
    root = write_task("hello", without=("instruction.md",))
    assert [item.file for item in refused(root)] == ["instruction.md"]


def test_order_is_by_the_bytes_of_the_name(write_task: WriteTask) -> None:
    for folder, name in (("z", "a/b"), ("a", "b/a"), ("m", "a-b/c")):
        write_task(folder, f'[task]\nname = "{name}"\n')
    plain = write_task("Zebra").parent
    assert [task.name for task in read_directory(plain)] == ["Zebra", "a-b/c", "a/b", "b/a"]


def test_the_digest_does_not_depend_on_the_place_or_on_other_files(tmp_path: Path) -> None:
    one = make_suite(tmp_path / "a" / "suite", tasks=3)
    two = make_suite(tmp_path / "b" / "suite", tasks=3)
    (two / "notes.txt").write_text("x")
    (two / ".git").mkdir()
    assert read_directory(one).ref == read_directory(two).ref
    (two / "task-0001" / "instruction.md").write_text("Other.\n")
    assert read_directory(one).digest != read_directory(two).digest


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/x/My Suite_2", "my-suite-2"),
        ("/x/a__b", "a--b"),
        ("/x/terminal-bench-2.1", "terminal-bench-2.1"),
        ("/x/Größe", "gr--e"),
        ("/", "tasks"),
    ],
)
def test_the_name_is_the_folders(path: str, name: str) -> None:
    assert taskset_name(path) == name


def test_dots_and_slashes_are_resolved_for_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = make_suite(tmp_path / "suite", tasks=1)
    monkeypatch.chdir(suite)
    assert {
        read_directory(path).name for path in (".", f"{suite}/", "../suite", suite / "task-0000" / "..")
    } == {"suite"}


def test_children_without_a_config_are_warned_about(write_task: WriteTask) -> None:
    suite = write_task().parent
    (suite / "docs").mkdir()
    (suite / ".hidden").mkdir()
    (suite / "README.md").write_text("x")
    (suite / "gone").symlink_to(suite / "nothing")
    warnings = read_directory(suite).warnings
    assert [(warning.code, warning.file) for warning in warnings] == [
        ("not_a_task", "docs"),
        ("not_a_task", "gone"),
    ]


def test_a_linked_task_folder_is_a_member(write_task: WriteTask, tmp_path: Path) -> None:
    suite = write_task().parent
    make_suite(tmp_path / "elsewhere", tasks=1, org="")
    (suite / "linked").symlink_to(tmp_path / "elsewhere" / "task-0000")
    assert [task.name for task in read_directory(suite)] == ["linked", "one"]


def test_all_errors_of_a_suite_are_said_at_once(write_task: WriteTask) -> None:
    write_task("a-broken", "[environment\n")
    write_task("b-types", '[environment]\ncpus = "two"\nmemory_mb = -1\n[agent]\ntimeout_sec = true\n')
    write_task("c-missing", without=("instruction.md", "tests/test.sh", "environment/Dockerfile"))
    suite = write_task("d-good").parent
    found = {(item.task, item.file, item.key) for item in refused(suite)}
    assert found == {
        ("a-broken", "a-broken/task.toml", ""),
        ("b-types", "b-types/task.toml", "environment.cpus"),
        ("b-types", "b-types/task.toml", "environment.memory_mb"),
        ("b-types", "b-types/task.toml", "agent.timeout_sec"),
        ("c-missing", "c-missing/instruction.md", ""),
        ("c-missing", "c-missing/tests/test.sh", ""),
        ("c-missing", "c-missing/environment/Dockerfile", ""),
    }
    broken = next(item for item in refused(suite) if item.task == "a-broken")
    assert "line 1" in broken.message


def test_two_tasks_of_one_name_are_refused(write_task: WriteTask) -> None:
    write_task("a", '[task]\nname = "x/y"\n')
    suite = write_task("b", '[task]\nname = "x/y"\n').parent
    (finding,) = refused(suite)
    assert (finding.key, finding.file) == ("task.name", "b/task.toml")
    assert "the task in a" in finding.message


def test_unknown_keys_are_warnings_with_the_nearest_key(write_task: WriteTask) -> None:
    suite = write_task(
        "one",
        "[agent]\ntimeout_secs = 5\ncpus = 1\n[wild]\nx = 1\n[environment.env]\nANY = 'x'\n"
        "[metadata]\nany = 1\n[[steps]]\nname = 's'\n[steps.agent]\nusr = 'x'\n",
        {"steps/s/instruction.md": "x"},
    ).parent
    warned = {warning.key: warning.hint for warning in read_directory(suite).warnings}
    assert warned == {
        "agent.timeout_secs": "did you mean agent.timeout_sec?",
        "agent.cpus": "did you mean environment.cpus?",
        "wild": warned["wild"],
        "steps[0].agent.usr": "did you mean steps[0].agent.user?",
    }
    assert warned["wild"].startswith("keys of the top level: schema_version")


def test_old_keys_are_one_warning_a_suite(write_task: WriteTask) -> None:
    for name in ("a", "b"):
        suite = write_task(name, 'version = "1.0"\n[environment]\nmemory = "2G"\n').parent
    warnings = read_directory(suite).warnings
    assert [(w.code, w.key, w.task) for w in warnings] == [
        ("deprecated_key", "version", ""),
        ("deprecated_key", "environment.memory", ""),
    ]
    assert "2 tasks" in warnings[1].message
    assert "memory_mb" in warnings[1].hint


def test_an_empty_suite_is_no_selection(tmp_path: Path) -> None:
    (tmp_path / "not-a-task").mkdir()
    with pytest.raises(UsageError) as caught:
        read_directory(tmp_path)
    assert caught.value.code == "no_tasks_selected"


@pytest.mark.parametrize("kind", ["absent", "file"])
def test_a_source_that_is_no_folder_is_unreadable(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "file":
        path.write_text("x")
    (finding,) = refused(path)
    assert finding.code == "source_unreadable"
    assert str(path) in finding.file


def test_names_with_control_characters_are_refused(write_task: WriteTask) -> None:
    suite = write_task("a\x1b[31mred").parent
    (finding,) = refused(suite)
    assert finding.key == "task.name"
    assert str(finding).isprintable()


def test_a_config_that_is_a_folder_is_refused(write_task: WriteTask) -> None:
    root = write_task(without=("task.toml",))
    (root / "task.toml").mkdir()
    assert [item.file for item in refused(root.parent)] == ["one/task.toml"]


def test_a_config_that_is_a_link_to_nothing_is_refused(write_task: WriteTask) -> None:
    root = write_task(without=("task.toml",))
    (root / "task.toml").symlink_to("nothing")
    assert [item.file for item in refused(root.parent)] == ["one/task.toml"]


def test_a_config_of_many_megabytes_is_refused(write_task: WriteTask) -> None:
    root = write_task(toml="# " + "x" * (1 << 20))
    assert "bytes" in refused(root)[0].message


def test_a_config_between_small_and_too_large_is_read(write_task: WriteTask) -> None:
    root = write_task(toml="# " + "x" * 100_000 + "\n[environment]\ncpus = 3\n")
    assert read_directory(root).tasks[0].config.environment.cpus == 3


class TestMetricScripts:
    """A dataset may bring a program that computes its metric; none is ever run."""

    def test_a_script_beside_the_manifest_is_refused(self, write_task: WriteTask) -> None:
        suite = write_task().parent
        (suite / "dataset.toml").write_text("")
        (suite / "metric.py").write_text("")
        assert [(item.code, item.file) for item in refused(suite)] == [
            ("metric_script_unsupported", "metric.py")
        ]

    def test_a_listed_script_is_refused(self, write_task: WriteTask) -> None:
        suite = write_task().parent
        (suite / "dataset.toml").write_text('[[files]]\npath = "metric.py"\ndigest = "sha256:0"\n')
        assert [(item.code, item.key) for item in refused(suite)] == [
            ("metric_script_unsupported", "files[0].path")
        ]

    def test_a_script_without_a_manifest_is_a_plain_file(self, write_task: WriteTask) -> None:
        suite = write_task().parent
        (suite / "metric.py").write_text("")
        assert len(read_directory(suite)) == 1

    def test_a_manifest_without_a_script_is_a_plain_file(self, write_task: WriteTask) -> None:
        suite = write_task().parent
        (suite / "dataset.toml").write_text('files = [1, {path = "README.md"}]\n')
        assert len(read_directory(suite)) == 1
        (suite / "dataset.toml").write_text("files = 1\n")
        assert len(read_directory(suite)) == 1

    def test_a_broken_manifest_is_refused(self, write_task: WriteTask) -> None:
        suite = write_task().parent
        (suite / "dataset.toml").write_text("files = [\n")
        assert [item.file for item in refused(suite)] == ["dataset.toml"]


_AS_OTHER_USER = """
import os, sys
from argo_harbor.errors import HarborError
from argo_harbor.sources import load_taskset
load_taskset(sys.argv[1])  # as root it succeeds, and imports what the other user may not
os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    load_taskset(sys.argv[1])
except HarborError as error:
    for item in error.items:
        print(item.code, item.file)
    sys.exit(error.exit_status)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become another user")
@pytest.mark.parametrize(
    ("locked", "named"),
    [
        ("", "suite"),
        ("one", "one"),
        ("one/task.toml", "one/task.toml"),
        ("one/tests", "one/tests"),
        ("one/tests/test.sh", "one/tests/test.sh"),
    ],
)
def test_what_cannot_be_read_is_named(
    write_task: WriteTask, fast_path: Path, locked: str, named: str
) -> None:
    # Not below pytest's own folder, which every session that starts closes to others again.
    suite = Path(shutil.copytree(write_task().parent, fast_path / "suite"))
    fast_path.chmod(0o755)
    (suite / locked).chmod(0)
    package = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", _AS_OTHER_USER, str(suite)],
        env={"PYTHONPATH": str(package), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3, done.stderr
    code, _, file = done.stdout.strip().partition(" ")
    assert code == "source_unreadable"
    assert file.endswith(named)


def test_reading_does_not_import_harbor(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", tasks=2, separate_every=2)
    (suite / "task-0000" / ".gitignore").write_text("*.log\n")
    script = (
        "import sys; from argo_harbor.sources import load_taskset; load_taskset(sys.argv[1]);"
        "roots = {name.partition('.')[0] for name in sys.modules};"
        "print(sorted(roots & {'harbor', 'hera', 'kubernetes'}), 'argo_harbor' in roots)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(suite)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.strip() == "[] True", done.stderr
