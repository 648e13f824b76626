"""Files: what goes up comes down, with its modes and owners."""

from __future__ import annotations

import os
import stat
from io import BytesIO
from pathlib import Path

import pytest
from opensandbox.exceptions import SandboxException
from opensandbox.models.filesystem import (
    ContentReplaceEntry,
    MoveEntry,
    SearchEntry,
    SetPermissionEntry,
    WriteEntry,
)

from tests.contract.daemons import EXECD_TOKEN, Program, Reply, call
from tests.contract.sdk import EXECD_HEADER, EXECD_PORT, Execd

pytestmark = pytest.mark.contract

HEADERS = {EXECD_HEADER: EXECD_TOKEN}
LARGE = 20 << 20


def upload(*parts: tuple[str, str, str], boundary: str = "b") -> Reply:
    """Send (name, filename, content) as they are; a part without a filename is a plain value."""
    body = ""
    for name, filename, content in parts:
        file = f'; filename="{filename}"' if filename else ""
        body += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n{content}\r\n'
    headers = {**HEADERS, "Content-Type": f"multipart/form-data; boundary={boundary}"}
    return call(EXECD_PORT, "POST", "/files/upload", f"{body}--{boundary}--\r\n", headers=headers)


def code(reply: Reply) -> object:
    body = reply.json()
    assert isinstance(body, dict)
    return body["code"]


def test_write_and_read(sandbox: Execd, tmp_path: Path) -> None:
    target = tmp_path / "new" / "folder" / "file.bin"
    content = os.urandom(100_000)
    sandbox.files.write_files([WriteEntry(path=str(target), data=content, mode=640)])
    assert target.read_bytes() == content
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sandbox.files.read_bytes(str(target)) == content


def test_several_at_once_keep_their_order(sandbox: Execd, tmp_path: Path) -> None:
    entries = [
        WriteEntry(path=str(tmp_path / f"{number}.txt"), data=f"content {number}", mode=600 + number)
        for number in range(5)
    ]
    sandbox.files.write_files(entries)
    for number in range(5):
        assert (tmp_path / f"{number}.txt").read_text() == f"content {number}"


def test_large_file_arrives_whole(sandbox: Execd, tmp_path: Path) -> None:
    content = os.urandom(1 << 20) * (LARGE >> 20)
    target = tmp_path / "large"
    sandbox.files.write_files([WriteEntry(path=str(target), data=BytesIO(content), mode=644)])
    assert target.stat().st_size == LARGE
    assert b"".join(sandbox.files.read_bytes_stream(str(target))) == content


def test_overwriting_leaves_nothing_of_the_old(sandbox: Execd, tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("a long old content")
    sandbox.files.write_file(str(target), "new")
    assert target.read_text() == "new"


def test_owner_by_name(sandbox: Execd, tmp_path: Path) -> None:
    target = tmp_path / "file"
    sandbox.files.write_file(str(target), "x", owner="nobody", group="nogroup")
    assert (target.owner(), target.group()) == ("nobody", "nogroup")


def test_broken_uploads(sandbox: Execd, tmp_path: Path) -> None:
    described = ("metadata", "metadata", f'{{"path": "{tmp_path}/x"}}')
    content = ("file", "x", "content")
    assert code(upload()) in {"INVALID_FILE", "INVALID_FILE_METADATA"}
    assert code(upload(content)) == "INVALID_FILE_METADATA"
    assert code(upload(described)) == "INVALID_FILE_CONTENT"
    assert code(upload(described, content, described)) == "INVALID_FILE"
    assert code(upload(("metadata", "metadata", "{"), content)) == "INVALID_FILE_METADATA"
    assert code(upload(("metadata", "metadata", "{}"), content)) == "INVALID_FILE_METADATA"
    # A description without a filename is a value of the form, not a part of the upload.
    assert code(upload(("metadata", "", described[2]), content)) == "INVALID_FILE_METADATA"


def test_ranges(sandbox: Execd, tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("0123456789")
    assert sandbox.files.read_bytes(str(target), range_header="bytes=2-4") == b"234"
    assert sandbox.files.read_bytes(str(target), range_header="bytes=7-") == b"789"
    assert sandbox.files.read_bytes(str(target), range_header="bytes=-3") == b"789"
    path = f"/files/download?path={target}"
    beyond = call(EXECD_PORT, "GET", path, headers={**HEADERS, "Range": "bytes=50-60"})
    assert beyond.status == 416
    part = call(EXECD_PORT, "GET", path, headers={**HEADERS, "Range": "bytes=0-0"})
    assert (part.status, part.body) == (206, "0")


def test_lines(sandbox: Execd, tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("one\ntwo\nthree\nfour\n")
    assert sandbox.files.read_file(str(target), offset=2, limit=2) == "two\nthree"
    assert sandbox.files.read_file(str(target), offset=4) == "four"
    reply = call(EXECD_PORT, "GET", f"/files/download?path={target}&offset=0", headers=HEADERS)
    assert reply.status == 400


def test_missing_files(sandbox: Execd, tmp_path: Path) -> None:
    for path in ("/files/download", "/files/info"):
        reply = call(EXECD_PORT, "GET", f"{path}?path={tmp_path}/nothing", headers=HEADERS)
        assert (reply.status, code(reply)) == (404, "FILE_NOT_FOUND")
    reply = call(EXECD_PORT, "GET", "/files/download", headers=HEADERS)
    assert (reply.status, code(reply)) == (400, "MISSING_QUERY")
    with pytest.raises(SandboxException):
        sandbox.files.read_bytes(str(tmp_path / "nothing"))


def test_info_tells_links_from_files(sandbox: Execd, tmp_path: Path) -> None:
    file, link, folder, pipe = (tmp_path / name for name in ("file", "link", "folder", "pipe"))
    file.write_text("12345")
    file.chmod(0o640)
    link.symlink_to(file)
    folder.mkdir()
    os.mkfifo(pipe)
    found = sandbox.files.get_file_info([str(each) for each in (file, link, folder, pipe)])
    assert [found[str(each)].entry_type for each in (file, link, folder, pipe)] == [
        "file",
        "symlink",
        "directory",
        "other",
    ]
    assert (found[str(file)].size, found[str(file)].mode) == (5, 640)
    assert (found[str(file)].owner, found[str(file)].group) == ("root", "root")


def test_pipe_is_no_download(sandbox: Execd, execd_program: Program, tmp_path: Path) -> None:
    if not execd_program.ours:
        pytest.skip("the published program waits for the pipe's other end")
    os.mkfifo(tmp_path / "pipe")
    reply = call(EXECD_PORT, "GET", f"/files/download?path={tmp_path}/pipe", headers=HEADERS)
    assert (reply.status, code(reply)) == (500, "RUNTIME_ERROR")
    reply = call(EXECD_PORT, "GET", f"/files/download?path={tmp_path}", headers=HEADERS)
    assert (reply.status, code(reply)) == (500, "RUNTIME_ERROR")


def test_search(sandbox: Execd, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    for name in ("a.txt", "b.log", "below/c.txt"):
        (tmp_path / name).write_text(name)

    def found(pattern: str) -> set[str]:
        entries = sandbox.files.search(SearchEntry(path=str(tmp_path), pattern=pattern))
        return {str(Path(entry.path).relative_to(tmp_path)) for entry in entries}

    assert found("**") == {"a.txt", "b.log", "below/c.txt"}
    assert found("*.txt") == {"a.txt", "below/c.txt"}
    reply = call(EXECD_PORT, "GET", f"/files/search?path={tmp_path}/nothing", headers=HEADERS)
    assert reply.status == 404


def test_move_permissions_replace_delete(sandbox: Execd, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "deep" / "second"
    first.write_text("one two one")
    sandbox.files.move_files([MoveEntry(source=str(first), destination=str(second))])
    assert not first.exists()
    sandbox.files.set_permissions([SetPermissionEntry(path=str(second), mode=600, owner="nobody")])
    assert (stat.S_IMODE(second.stat().st_mode), second.owner()) == (0o600, "nobody")
    sandbox.files.replace_contents(
        [ContentReplaceEntry(path=str(second), old_content="one", new_content="1")]
    )
    assert second.read_text() == "1 two 1"
    sandbox.files.delete_files([str(second), str(tmp_path / "nothing")])
    assert not second.exists()


def test_moving_onto_something_is_refused(sandbox: Execd, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    with pytest.raises(SandboxException):
        sandbox.files.move_files([MoveEntry(source=str(tmp_path / "a"), destination=str(tmp_path / "b"))])
    assert (tmp_path / "b").read_text() == "b"


def test_folders(sandbox: Execd, tmp_path: Path) -> None:
    made, there = tmp_path / "a" / "made", tmp_path / "there"
    there.mkdir(mode=0o700)
    sandbox.files.create_directories(
        [WriteEntry(path=str(made), mode=1777), WriteEntry(path=str(there), mode=755)]
    )
    assert stat.S_IMODE(made.stat().st_mode) & 0o777 == 0o777
    assert stat.S_IMODE(there.stat().st_mode) == 0o700
    (made / "file").write_text("x")
    reply = call(EXECD_PORT, "GET", f"/directories/list?path={tmp_path}/a&depth=2", headers=HEADERS)
    entries = reply.json()
    assert isinstance(entries, list)
    assert [Path(entry["path"]).name for entry in entries] == ["made", "file"]
    sandbox.files.delete_directories([str(tmp_path / "a")])
    assert not (tmp_path / "a").exists()


def test_files_cannot_delete_folders(sandbox: Execd, tmp_path: Path) -> None:
    reply = call(EXECD_PORT, "DELETE", f"/files?path={tmp_path}", headers=HEADERS)
    assert reply.status == 500
    assert tmp_path.is_dir()
