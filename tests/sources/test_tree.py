"""Which files belong to a task, and what is said about the others."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from argo_harbor.errors import Refused
from argo_harbor.sources import load_taskset
from argo_harbor.sources.digest import read_file
from argo_harbor.sources.tree import read_tree
from tests.sources.conftest import WriteTask


def messages(root: Path) -> dict[str, str]:
    return {finding.file: finding.message for finding in read_tree(str(root)).findings}


def test_links_inside_the_task_are_hashed_as_the_files_they_name(write_task: WriteTask) -> None:
    root = write_task(files={"shared/lib.sh": "lib"})
    (root / "tests" / "lib.sh").symlink_to("../shared/lib.sh")
    (root / "tests" / "again.sh").symlink_to("lib.sh")
    task = load_taskset(root).tasks[0]
    hashes = {file.path: file.sha256 for file in task.files}
    assert hashes["tests/lib.sh"] == hashes["tests/again.sh"]
    assert "shared/lib.sh" not in hashes


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("tests/x", "/etc/passwd"),
        ("tests/x", "../../other"),
        ("environment/x", "../../../nothing"),
        ("solution", "/etc"),
        ("README.md", "/etc/hostname"),
        (".gitignore", "/etc/hostname"),
        ("tests/deep", ".."),
    ],
)
def test_links_that_leave_the_task_or_hold_themselves_are_refused(
    write_task: WriteTask, path: str, target: str
) -> None:
    root = write_task()
    (root / path).symlink_to(target)
    assert path in messages(root)
    with pytest.raises(Refused) as caught:
        load_taskset(root)
    assert caught.value.code == "invalid_task_config"


def test_cycles_over_two_links_are_found(write_task: WriteTask) -> None:
    root = write_task(files={"tests/a/x": "x", "tests/b/y": "y"})
    (root / "tests/a/l").symlink_to("../b")
    (root / "tests/b/m").symlink_to("../a")
    assert set(messages(root).values()) == {"links to a folder that holds it"}


def test_a_link_behind_a_linked_folder_must_stay_inside(write_task: WriteTask) -> None:
    root = write_task(files={"shared/deep/x": "x"})
    (root / "tests" / "shared").symlink_to("../shared")
    assert messages(root) == {}
    (root / "shared/deep/out").symlink_to("/etc")
    assert messages(root) == {"tests/shared/deep/out": "links out of the task"}


def test_links_to_folders_and_to_nothing_are_warned_about(write_task: WriteTask) -> None:
    root = write_task(files={"environment/v1/x": "x"})
    (root / "environment" / "current").symlink_to("v1")
    (root / "tests" / "later").symlink_to("not-there")
    (root / "trajectory.json").symlink_to("not-there")
    (root / "solution").symlink_to("not-there")
    warnings = load_taskset(root).warnings
    assert {(warning.code, warning.file) for warning in warnings} == {
        ("link_left_out", "environment/current"),
        ("link_left_out", "tests/later"),
        ("link_left_out", "trajectory.json"),
        ("link_left_out", "solution"),
    }


def test_an_ignored_link_of_the_environment_may_lead_anywhere(write_task: WriteTask) -> None:
    root = write_task(files={".gitignore": ".venv\n"})
    (root / "environment" / ".venv").mkdir()
    (root / "environment" / ".venv" / "python").symlink_to("/usr/bin/python3")
    assert messages(root) == {}
    (root / "tests" / ".venv").mkdir()
    (root / "tests" / ".venv" / "python").symlink_to("/usr/bin/python3")
    assert list(messages(root)) == ["tests/.venv/python"]


def test_pipes_are_refused(write_task: WriteTask) -> None:
    root = write_task()
    os.mkfifo(root / "tests" / "pipe")
    (root / "tests" / "link").symlink_to("pipe")
    assert messages(root) == dict.fromkeys(("tests/pipe", "tests/link"), "is neither file, folder nor link")


def test_a_file_in_the_place_of_a_folder_is_refused(write_task: WriteTask) -> None:
    root = write_task(files={"solution": "x"})
    (root / "README.md").mkdir()
    assert messages(root) == {"solution": "is no folder", "README.md": "is no file"}


def test_names_that_are_not_utf_8_are_refused(write_task: WriteTask) -> None:
    root = write_task()
    Path(os.fsdecode(os.fsencode(root / "tests") + b"/\xff")).write_text("x")
    (finding,) = read_tree(str(root)).findings
    assert finding.message == "has a name that is not UTF-8"
    finding.file.encode()


def test_more_files_than_an_archive_takes_are_refused(
    write_task: WriteTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_task()
    monkeypatch.setattr("argo_harbor.sources.tree.MAX_FILES", 3)
    assert "more than 3" in messages(root)[""]


@pytest.mark.parametrize(
    ("file", "text"),
    [(".gitignore", "a\x00b/***/[\n!\n"), (".gitignore", b"\xff"), ("tests/.harborignore", b"\xff")],
)
def test_broken_ignore_files_are_refused(write_task: WriteTask, file: str, text: str | bytes) -> None:
    root = write_task()
    (root / file).write_bytes(text.encode() if isinstance(text, str) else text)
    assert messages(root)


def test_ignore_files_that_are_folders_or_lead_out_are_refused(write_task: WriteTask) -> None:
    root = write_task(files={"tests/a/x": "x"})
    (root / ".gitignore").mkdir()
    (root / "tests/.harborignore").symlink_to("/etc/hostname")
    assert len(read_tree(str(root)).findings) >= 2
    (root / "tests/.harborignore").unlink()
    (root / "tests/.harborignore").mkdir()
    (root / "tests/.harborignore/x").write_text("x")
    assert ".harborignore" in messages(root)


def test_a_task_must_not_ignore_what_it_needs(write_task: WriteTask) -> None:
    root = write_task(files={".gitignore": "*.toml\ntest.sh\nDockerfile\ninstruction.md\n"})
    with pytest.raises(Refused) as caught:
        load_taskset(root)
    assert {item.file for item in caught.value.items} == {
        "task.toml", "tests/test.sh", "environment/Dockerfile", "instruction.md",
    }  # fmt: skip
    assert {item.message for item in caught.value.items} == {"is left out by .gitignore"}


def test_harborignore_can_leave_out_the_test(write_task: WriteTask) -> None:
    root = write_task(files={"tests/.harborignore": "*.sh\n"})
    with pytest.raises(Refused, match=r"is left out by \.harborignore"):
        load_taskset(root)


def test_what_is_needed_may_not_lie_behind_a_folder_link(write_task: WriteTask) -> None:
    root = write_task(
        toml='[[steps]]\nname = "s"\n', files={"real/instruction.md": "x", "real/tests/test.sh": "x"}
    )
    (root / "steps").mkdir()
    (root / "steps/s").symlink_to("../real")
    with pytest.raises(Refused, match="steps/s is a link to a folder"):
        load_taskset(root)


def test_large_files_have_the_same_digests_as_small_ones(write_task: WriteTask) -> None:
    root = write_task()
    data = b"line of a large file\n" * 100_000
    (root / "environment/data").write_bytes(data)
    task = load_taskset(root).tasks[0]
    file = next(file for file in task.files if file.path == "environment/data")
    assert (file.size, file.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    (root / "environment/data").write_bytes(data + b"x")
    assert load_taskset(root).tasks[0].agent_image.environment_digest != task.agent_image.environment_digest


def test_a_pipe_put_in_place_after_the_walk_does_not_block(write_task: WriteTask) -> None:
    root = write_task()
    os.mkfifo(root / "pipe")
    with pytest.raises(OSError, match="no longer a regular file"):
        read_file(str(root / "pipe"))


def test_a_link_to_an_ignore_file_is_left_out(write_task: WriteTask) -> None:
    root = write_task(
        files={".harborignore": "x", "solution/.harborignore": "secret\n", "solution/secret": "x"}
    )
    (root / "tests/rules").symlink_to("../.harborignore")
    (root / "tests/answer").symlink_to("../solution/secret")
    (root / "trajectory.json").symlink_to("README.md")
    (root / "README.md").write_text("x")
    tree = read_tree(str(root))
    assert {path for path, file in tree.left_out.items() if file == ".harborignore"} == {
        "solution/.harborignore", "solution/secret", "tests/rules", "tests/answer",
    }  # fmt: skip
    assert "trajectory.json" in tree.files


def test_a_folder_link_is_left_out_by_harborignore(write_task: WriteTask) -> None:
    root = write_task(files={"tests/.harborignore": "out\n", "shared/x": "x"})
    (root / "tests/out").symlink_to("../../..")
    assert read_tree(str(root)).findings == []
