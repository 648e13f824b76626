"""Archives: the same bytes every time, and back to the same content."""

from __future__ import annotations

import gzip
import io
import os
import random
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from argo_harbor.errors import Refused
from argo_harbor.model.taskset import Task
from argo_harbor.sources import load_taskset
from argo_harbor.sources.archive import write_archive
from argo_harbor.sources.unpack import unpack
from tests.sources.conftest import WriteTask
from tests.support.trees import make_plan, write_tree


def packed(task: Task) -> bytes:
    out = io.BytesIO()
    write_archive(task, out)
    return out.getvalue()


def read(root: Path) -> Task:
    return load_taskset(root).tasks[0]


def test_an_archive_holds_exactly_the_hashed_files(write_task: WriteTask) -> None:
    root = write_task(
        files={"notes.txt": "x", "tests/a.pyc": "x", "environment/data/x": "x", ".gitignore": "*.pyc\n"}
    )
    (root / "tests/link.sh").symlink_to("test.sh")
    (root / "instruction.md").chmod(0o4640)
    task = read(root)
    with tarfile.open(fileobj=io.BytesIO(packed(task))) as tar:
        members = tar.getmembers()
    assert [member.name for member in members] == [file.path for file in task.files]
    assert {(member.uid, member.gid, member.uname, member.mtime) for member in members} == {(0, 0, "", 0)}
    by_name = {member.name: member for member in members}
    assert by_name["instruction.md"].mode == 0o640
    assert by_name["tests/test.sh"].mode == 0o755
    assert by_name["tests/link.sh"].issym()
    assert by_name["tests/link.sh"].linkname == "test.sh"


def test_the_same_files_give_the_same_bytes(write_task: WriteTask) -> None:
    one, two = write_task("a"), write_task("b")
    os.utime(two / "instruction.md", (1, 1))
    assert packed(read(one)) == packed(read(two))


def test_a_link_to_what_is_not_hashed_becomes_a_file(write_task: WriteTask, tmp_path: Path) -> None:
    root = write_task(files={"shared/lib.sh": "lib"})
    (root / "tests/lib.sh").symlink_to("../shared/lib.sh")
    task = read(root)
    (tmp_path / "a.tar.gz").write_bytes(packed(task))
    unpack(tmp_path / "a.tar.gz", tmp_path / "out", digest=task.digest)
    assert (tmp_path / "out/tests/lib.sh").read_text() == "lib"
    assert not (tmp_path / "out/tests/lib.sh").is_symlink()


def test_modes_and_links_come_back(write_task: WriteTask, tmp_path: Path) -> None:
    root = write_task()
    (root / "tests/again").mkdir()
    (root / "tests/again/link.sh").symlink_to("../test.sh")
    (root / "instruction.md").chmod(0o000)
    task = read(root)
    (tmp_path / "a.tar.gz").write_bytes(packed(task))
    unpack(tmp_path / "a.tar.gz", tmp_path / "new/folder/out", digest=task.digest)
    out = tmp_path / "new/folder/out"
    assert os.readlink(out / "tests/again/link.sh") == "../test.sh"
    assert (out / "tests/test.sh").stat().st_mode & 0o777 == 0o755
    assert (out / "instruction.md").stat().st_mode & 0o777 == 0o400
    assert [path.name for path in out.parent.iterdir()] == ["out"]
    assert read(out).digest == task.digest


def test_what_was_packed_comes_back_with_its_digest(fast_path: Path) -> None:
    packed_trees = 0
    for number in range(60):
        plan = make_plan(1000 + number)
        files = plan.files | {"instruction.md": (b"x", 0o644), "tests/test.sh": (b"x", 0o755)}
        try:
            task = read(write_tree(plan._replace(files=files), fast_path / "task"))
        except Refused:
            continue
        packed_trees += 1
        (fast_path / "a.tar.gz").write_bytes(packed(task))
        out = fast_path / f"out-{number}"
        unpack(fast_path / "a.tar.gz", out, digest=task.digest)
        found = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if not path.is_dir())
        assert found == [file.path for file in task.files], number
        assert all(path.resolve().is_relative_to(out.resolve()) for path in out.rglob("*"))
    assert packed_trees >= 30


@pytest.mark.parametrize("change", ["shorter", "longer", "other", "gone"])
def test_a_file_that_changed_since_it_was_read_is_refused(write_task: WriteTask, change: str) -> None:
    root = write_task()
    task = read(root)
    file = root / "tests/test.sh"
    text = file.read_text()
    if change == "gone":
        file.unlink()
    else:
        file.write_text({"shorter": text[:-1], "longer": text + "x", "other": text.replace("1", "2")}[change])
    with pytest.raises(Refused) as caught:
        packed(task)
    assert caught.value.code == "source_changed"
    assert [(item.task, item.file) for item in caught.value.items] == [("one", "tests/test.sh")]


def test_a_file_that_cannot_be_read_any_more_is_refused(write_task: WriteTask) -> None:
    root = write_task()
    task = read(root)
    (root / "tests/test.sh").unlink()
    (root / "tests/test.sh").mkdir()
    with pytest.raises(Refused, match="no longer a regular file"):
        packed(task)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_in_the_place_of_a_file_holds_nobody(write_task: WriteTask) -> None:
    root = write_task()
    task = read(root)
    (root / "instruction.md").unlink()
    os.mkfifo(root / "instruction.md")
    with pytest.raises(Refused, match="no longer a regular file"):
        packed(task)


def test_every_file_that_changed_is_named(write_task: WriteTask) -> None:
    root = write_task(files={"tests/a": "a", "tests/b": "b", "tests/c": "c"})
    task = read(root)
    (root / "tests/a").write_text("x")
    (root / "tests/b").unlink()
    (root / "instruction.md").write_text("Do it.\nAnd more.\n")
    with pytest.raises(Refused) as caught:
        packed(task)
    assert {item.file for item in caught.value.items} == {"instruction.md", "tests/a", "tests/b"}
    assert {item.code for item in caught.value.items} == {"source_changed"}


@pytest.mark.parametrize("again", ["tests/other", "instruction.md"])
def test_a_link_that_names_another_file_now_is_a_change(write_task: WriteTask, again: str) -> None:
    root = write_task(files={"tests/one": "1", "tests/other": "2"})
    (root / "tests/link").symlink_to("one")
    task = read(root)
    (root / "tests/link").unlink()
    (root / "tests/link").symlink_to(os.path.relpath(again, "tests"))
    with pytest.raises(Refused) as caught:
        packed(task)
    assert [(item.code, item.file) for item in caught.value.items] == [("source_changed", "tests/link")]


class _Editor(io.BytesIO):
    """Takes an archive, and edits a file of the task when it has taken some of it."""

    def __init__(self, path: Path, change: str) -> None:
        super().__init__()
        self._path = path
        self._change = change

    def write(self, data: bytes) -> int:  # type: ignore[override]
        if self.tell() > 100_000 and self._change:
            with self._path.open("r+b") as file:
                file.seek(0, os.SEEK_END)
                if self._change == "longer":
                    file.write(b"x")
                elif self._change == "shorter":
                    file.truncate(3_000_000)
                else:
                    file.seek(-1, os.SEEK_END)
                    file.write(b"x")
            self._change = ""
        return super().write(data)


@pytest.mark.parametrize("change", ["longer", "shorter", "other"])
def test_a_file_that_changes_while_it_is_packed_is_refused(write_task: WriteTask, change: str) -> None:
    root = write_task()
    large = root / "environment/data"
    large.write_bytes(random.Random(0).randbytes(4_000_000) + b"\0")
    task = read(root)
    with pytest.raises(Refused) as caught:
        write_archive(task, _Editor(large, change))
    assert [(item.code, item.file) for item in caught.value.items] == [("source_changed", "environment/data")]


def test_a_full_disk_is_no_fault_of_the_task(write_task: WriteTask) -> None:
    root = write_task()
    (root / "environment/data").write_bytes(random.Random(0).randbytes(100_000))
    with pytest.raises(OSError, match="No space left"), Path("/dev/full").open("wb") as full:
        write_archive(read(root), full)


def test_tasks_that_are_too_large_are_refused(write_task: WriteTask, monkeypatch: pytest.MonkeyPatch) -> None:
    task = read(write_task())
    monkeypatch.setattr("argo_harbor.sources.bounds.MAX_FILE_BYTES", 20)
    monkeypatch.setattr("argo_harbor.sources.bounds.MAX_TOTAL_BYTES", 24)
    with pytest.raises(Refused) as caught:
        packed(task)
    assert {item.file for item in caught.value.items} == {"tests/test.sh", ""}


def test_a_task_without_files_here_cannot_be_packed(write_task: WriteTask) -> None:
    with pytest.raises(ValueError, match="not on this machine"):
        packed(replace(read(write_task()), root=None))


def test_the_gzip_header_tells_nothing(write_task: WriteTask) -> None:
    data = packed(read(write_task()))
    assert data[3] == 0
    assert data[4:8] == b"\0\0\0\0"
    assert gzip.decompress(data)
