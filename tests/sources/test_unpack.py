"""Hostile archives: nothing outside the folder, nothing left behind, always a refusal with a reason."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argo_harbor.errors import Refused
from argo_harbor.sources.digest import digest_of
from argo_harbor.sources.tar import BLOCK, BrokenTar, read_entries
from argo_harbor.sources.unpack import unpack

Build = Callable[[tarfile.TarFile], None]


def file(tar: tarfile.TarFile, name: str, data: bytes = b"x", **fields: object) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    tar.addfile(info, io.BytesIO(data))


def odd(tar: tarfile.TarFile, name: str, kind: bytes, target: str = "") -> None:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    tar.addfile(info)


def link(tar: tarfile.TarFile, name: str, target: str) -> None:
    odd(tar, name, tarfile.SYMTYPE, target)


def archive(tmp_path: Path, build: Build, *, form: int = tarfile.PAX_FORMAT) -> Path:
    path = tmp_path / "task.tar.gz"
    with tarfile.open(path, "w:gz", format=form) as tar:
        build(tar)
    return path


def refusal(path: Path, dest: Path, digest: str = "0" * 64) -> str:
    before = sorted(dest.parent.rglob("*"))
    with pytest.raises(Refused) as caught:
        unpack(path, dest, digest=digest)
    assert caught.value.code == "source_unreadable"
    assert sorted(dest.parent.rglob("*")) == before
    return caught.value.message


HOSTILE: dict[str, Build] = {
    "climbs": lambda tar: file(tar, "../x"),
    "climbs inside": lambda tar: file(tar, "tests/../../x"),
    "absolute": lambda tar: file(tar, "/tmp/x"),
    "dot": lambda tar: file(tar, "./x"),
    "empty name": lambda tar: file(tar, "a//b"),
    "long name": lambda tar: file(tar, "a" * 256),
    "long path": lambda tar: file(tar, "/".join(["a" * 200] * 21)),
    "absolute link": lambda tar: link(tar, "x", "/etc/passwd"),
    "climbing link": lambda tar: link(tar, "tests/x", "../../etc/passwd"),
    "link to nothing": lambda tar: link(tar, "x", "nothing"),
    "link to itself": lambda tar: link(tar, "x", "x"),
    "link to a folder": lambda tar: (file(tar, "a/b"), link(tar, "x", "a"))[0],
    "link to a link": lambda tar: (file(tar, "a"), link(tar, "b", "a"), link(tar, "c", "b"))[0],
    "empty link": lambda tar: link(tar, "x", ""),
    "write through a link": lambda tar: (file(tar, "a"), link(tar, "b", "a"), file(tar, "b/c"))[0],
    "link through a link": lambda tar: (file(tar, "a"), link(tar, "b", "a"), link(tar, "b/c", "../a"))[0],
    "hard link": lambda tar: (file(tar, "a"), odd(tar, "b", tarfile.LNKTYPE, "a"))[0],
    "device": lambda tar: odd(tar, "x", tarfile.CHRTYPE),
    "pipe": lambda tar: odd(tar, "x", tarfile.FIFOTYPE),
    "folder": lambda tar: odd(tar, "x", tarfile.DIRTYPE),
    "twice": lambda tar: (file(tar, "a"), file(tar, "a"))[0],
    "file and folder": lambda tar: (file(tar, "a"), file(tar, "a/b"))[0],
    "folder and file": lambda tar: (file(tar, "a/b"), file(tar, "a"))[0],
    "other content": lambda tar: file(tar, "task.toml"),
    "control characters": lambda tar: file(tar, "\x1b[31m/../x"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives_are_refused(tmp_path: Path, name: str) -> None:
    path = archive(tmp_path, HOSTILE[name])
    (tmp_path / "in").mkdir()
    assert refusal(path, tmp_path / "in" / "out").isprintable()


def test_kinds_of_other_tools_are_refused(tmp_path: Path) -> None:
    path = archive(tmp_path, lambda tar: file(tar, "a" * 150), form=tarfile.GNU_FORMAT)
    assert "kind b'L'" in refusal(path, tmp_path / "out")


def test_set_id_bits_do_not_come_out(tmp_path: Path) -> None:
    path = archive(tmp_path, lambda tar: file(tar, "a", mode=0o6777))
    unpack(path, tmp_path / "out", digest=digest_of([("a", sha256(b"x").hexdigest())]))
    assert (tmp_path / "out/a").stat().st_mode & 0o7777 == 0o777


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(FileExistsError):
        unpack(tmp_path / "a", tmp_path / "out", digest="")


def test_an_absent_archive_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        unpack(tmp_path / "a", tmp_path / "out", digest="")
    assert list(tmp_path.iterdir()) == []


def test_numbers_and_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def three(tar: tarfile.TarFile) -> None:
        for name in "abc":
            file(tar, name, b"x" * 100)

    path = archive(tmp_path, three)
    monkeypatch.setattr("argo_harbor.sources.bounds.MAX_FILE_BYTES", 99)
    assert "more than 99" in refusal(path, tmp_path / "out")
    monkeypatch.setattr("argo_harbor.sources.bounds.MAX_FILE_BYTES", 100)
    monkeypatch.setattr("argo_harbor.sources.bounds.MAX_TOTAL_BYTES", 299)
    assert "more than 299 bytes" in refusal(path, tmp_path / "out")
    monkeypatch.setattr("argo_harbor.sources.bounds.MAX_TOTAL_BYTES", 300)
    monkeypatch.setattr("argo_harbor.sources.bounds.MAX_FILES", 2)
    assert "more than 2 files" in refusal(path, tmp_path / "out")
    monkeypatch.setattr("argo_harbor.sources.bounds.MAX_FILES", 3)
    monkeypatch.setattr("argo_harbor.sources.bounds.MAX_NAMES_BYTES", 2)
    assert "more than 2 bytes of paths" in refusal(path, tmp_path / "out")


def test_a_bomb_of_headers_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = b"500 path=" + b"a" * 490 + b"\n"
    info = tarfile.TarInfo("x")
    info.type, info.size = b"x", len(body)
    path = tmp_path / "bomb.tar.gz"
    path.write_bytes(gzip.compress((info.tobuf(tarfile.USTAR_FORMAT) + body.ljust(BLOCK, b"\0")) * 400))
    assert "kind b'x'" in refusal(path, tmp_path / "out")


def test_a_small_archive_cannot_swell_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive(tmp_path, lambda tar: file(tar, "zeros", bytes(4 << 20)))
    assert path.stat().st_size < 8000
    monkeypatch.setattr("argo_harbor.sources.unpack.MAX_TOTAL_BYTES", 1 << 20)
    monkeypatch.setattr("argo_harbor.sources.unpack.MAX_FILES", 1)
    assert "larger than a task may be" in refusal(path, tmp_path / "out")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"99999 path=a\n", "damaged extended"),
        (b"x path=a\n", "no number"),
        (b"9 path=ab", "damaged extended"),
        (b"8 pathab\n", "damaged extended"),
        (b"10 path=\xff\n", "UTF-8"),
        (b"0 ", "damaged extended"),
    ],
)
def test_damaged_extended_headers_are_refused(body: bytes, problem: str) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = b"x", len(body)
    data = io.BytesIO(info.tobuf(tarfile.USTAR_FORMAT) + body.ljust(BLOCK, b"\0"))
    with pytest.raises(BrokenTar, match=problem):
        list(read_entries(data.read))


def test_a_huge_extended_header_is_not_read() -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = b"x", 1 << 32
    with pytest.raises(BrokenTar, match="too large"):
        list(read_entries(io.BytesIO(info.tobuf(tarfile.USTAR_FORMAT)).read))


def test_damaged_headers_are_refused() -> None:
    good = bytearray(tarfile.TarInfo("x").tobuf(tarfile.USTAR_FORMAT))
    good[0] ^= 1
    with pytest.raises(BrokenTar, match="damaged header"):
        list(read_entries(io.BytesIO(bytes(good)).read))
    not_octal = bytearray(tarfile.TarInfo("x").tobuf(tarfile.USTAR_FORMAT))
    not_octal[124:136] = b"\x80" + b"\0" * 11
    _sign(not_octal)
    with pytest.raises(BrokenTar, match="octal"):
        list(read_entries(io.BytesIO(bytes(not_octal)).read))
    not_text = bytearray(tarfile.TarInfo("x").tobuf(tarfile.USTAR_FORMAT))
    not_text[0] = 0xFF
    _sign(not_text)
    with pytest.raises(BrokenTar, match="UTF-8"):
        list(read_entries(io.BytesIO(bytes(not_text)).read))


def test_entries_must_be_read_in_order() -> None:
    info = tarfile.TarInfo("x")
    info.size = 3
    data = io.BytesIO(info.tobuf(tarfile.USTAR_FORMAT) + b"abc".ljust(BLOCK, b"\0"))
    with pytest.raises(BrokenTar, match="order"):
        list(read_entries(data.read))


def _sign(header: bytearray) -> None:
    header[148:156] = b" " * 8
    header[148:156] = f"{sum(header):06o}\0 ".encode()


def test_old_style_prefixes_are_read() -> None:
    info = tarfile.TarInfo("b" * 90)
    header = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    header[345:347] = b"aa"
    _sign(header)
    (entry,) = read_entries(io.BytesIO(bytes(header) + bytes(2 * BLOCK)).read)
    assert entry.path == f"aa/{'b' * 90}"


def _good() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        file(tar, "tests/ü", b"data" * 300)
        file(tar, "a" * 120, b"x")
        link(tar, "tests/link", "ü")
    return out.getvalue()


GOOD = _good()


@given(
    changes=st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=4),
    end=st.integers(0, len(GOOD)),
    packed=st.booleans(),
)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_bytes_are_refused_and_leave_nothing(
    changes: list[tuple[int, int]], end: int, packed: bool, fast_path: Path
) -> None:
    data = bytearray(gzip.compress(GOOD, mtime=0) if packed else GOOD)
    for place, value in changes:
        data[place % len(data)] = value
    cut = bytes(data[: max(end, 1)])
    folder = fast_path / "fuzz"
    folder.mkdir(exist_ok=True)
    path = fast_path / "task.tar.gz"
    path.write_bytes(cut if packed else gzip.compress(cut, 1))
    with pytest.raises(Refused):
        unpack(path, folder / "out", digest="0" * 64)
    assert os.listdir(folder) == []


def test_folders_and_dots_of_other_writers_are_no_content(tmp_path: Path) -> None:
    def build(tar: tarfile.TarFile) -> None:
        odd(tar, "./", tarfile.DIRTYPE)
        odd(tar, "./tests", tarfile.DIRTYPE)
        file(tar, "./tests/test.sh", b"true")
        file(tar, "./task.toml", b"")

    made = archive(tmp_path, build)
    hashes = {"task.toml": sha256(b"").hexdigest(), "tests/test.sh": sha256(b"true").hexdigest()}
    digest = digest_of(sorted(hashes.items()))
    dest = tmp_path / "out" / "task"
    dest.parent.mkdir()
    assert "not a file or link" in refusal(made, dest, digest)
    unpack(made, dest, digest=digest, foreign=True)
    assert (dest / "tests" / "test.sh").read_bytes() == b"true"


@pytest.mark.parametrize("name", ["././task.toml", "./../task.toml", ".//task.toml", "./"])
def test_other_writers_reach_no_further(tmp_path: Path, name: str) -> None:
    made = archive(tmp_path, lambda tar: file(tar, name))
    dest = tmp_path / "out" / "task"
    dest.parent.mkdir()
    with pytest.raises(Refused, match="has an entry with the path"):
        unpack(made, dest, digest="0" * 64, foreign=True)
    assert list(dest.parent.iterdir()) == []


def test_folders_without_number_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argo_harbor.sources.tar.MAX_FOLDERS", 2)

    def build(tar: tarfile.TarFile) -> None:
        for number in range(3):
            odd(tar, f"folder-{number}", tarfile.DIRTYPE)

    with pytest.raises(Refused, match="not a file or link"):
        unpack(archive(tmp_path, build), tmp_path / "task", digest="0" * 64, foreign=True)
