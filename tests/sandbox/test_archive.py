"""The strict reader on archives of GNU tar and Python, and on what a hostile sandbox may send."""

from __future__ import annotations

import io
import subprocess
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argo_harbor.sandbox.archive import ArchiveReader, is_header
from argo_harbor.sandbox.base import TransferRefused


def read(data: bytes) -> list[tuple[str, str, bytes, str]]:
    reader = ArchiveReader(io.BytesIO(data))
    return [("/".join(m.parts), m.kind, b"".join(reader.content()), m.target) for m in reader.members()]


def archive(*members: tarfile.TarInfo, content: bytes = b"", form: int = tarfile.GNU_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for member in members:
            member.size = len(content) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize("form", ["gnu", "posix", "ustar"])
def test_what_tar_writes_is_read(tmp_path, form):
    long = "n" * 90
    folder = tmp_path / "f" / long
    folder.mkdir(parents=True)
    (folder / "ünï\n").write_bytes(b"x" * 1300)
    (tmp_path / "f" / "empty").touch()
    (tmp_path / "f" / "link").symlink_to("t" * 90)
    packed = subprocess.run(
        ["tar", "-c", f"--format={form}", "-C", tmp_path / "f", "."], capture_output=True, check=True
    ).stdout
    assert sorted(read(packed)) == [
        ("", "folder", b"", ""),
        ("empty", "file", b"", ""),
        ("link", "link", b"", "t" * 90),
        (long, "folder", b"", ""),
        (f"{long}/ünï\n", "file", b"x" * 1300, ""),
    ]


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_and_targets(form):
    name, target = "/".join(["d" * 200] * 3), "t" * 3000
    assert read(archive(member(name, tarfile.SYMTYPE, target), form=form)) == [(name, "link", b"", target)]


def test_content_that_is_not_read_is_skipped():
    data = archive(member("a"), member("b"), content=b"c" * 700)
    assert [m.parts for m in ArchiveReader(io.BytesIO(data)).members()] == [("a",), ("b",)]


def test_kinds():
    kinds = {
        tarfile.LNKTYPE: "link",
        tarfile.SYMTYPE: "link",
        tarfile.CHRTYPE: "special",
        tarfile.DIRTYPE: "folder",
        tarfile.BLKTYPE: "special",
        tarfile.FIFOTYPE: "special",
        tarfile.REGTYPE: "file",
        tarfile.CONTTYPE: "file",
    }
    data = archive(*(member("x", kind) for kind in kinds))
    assert [entry[1] for entry in read(data)] == list(kinds.values())


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../x", "a/../../x", "a/..", "n" * 256, "d/" * 129 + "x", "x/" * 2100]
)
def test_names_that_lead_out_or_are_too_long_are_refused(name):
    with pytest.raises(TransferRefused):
        read(archive(member(name)))


def test_a_name_with_a_nul_is_refused():
    with pytest.raises(TransferRefused):
        read(archive(member("x\0y"), form=tarfile.PAX_FORMAT)[:512].replace(b"x", b"\0") + bytes(1024))


def damaged(change: dict[int, bytes], *, content: bytes = b"") -> bytes:
    """An archive of one file with bytes of its header replaced and the checksum made right again."""
    data = bytearray(archive(member("x"), content=content))
    for place, new in change.items():
        data[place : place + len(new)] = new
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "cut short"),
        (b"x" * 100, "cut short"),
        (b"x" * 512, "broken"),
        (archive(member("x"), content=b"y" * 600)[:700], "cut short"),
        (archive(member("x"), content=b"y" * 600)[:1200], "cut short"),
        (archive(member("x"))[:512], "cut short"),
        (archive(member("x")).replace(b"ustar", b"ustaR"), "checksum"),
        (damaged({124: b"-0000000001\0"}), "number"),
        (damaged({156: b"S"}), "unknown type"),
        (damaged({124: b"\x80" + b"\xff" * 11}), "cut short"),
        (damaged({156: b"L", 124: b"00007777777\0"}), "name of"),
        (damaged({156: b"x", 124: b"77777777777\0"}), "name of"),
        (damaged({156: b"L", 124: b"00000001000\0"})[:600], "cut short"),
    ],
)
def test_broken_archives_are_refused(data, says):
    with pytest.raises(TransferRefused, match=says):
        read(data)


def extended(record: bytes) -> bytes:
    header = bytearray(damaged({156: b"x", 124: b"%011o\0" % len(record)})[:512])
    return bytes(header) + record + bytes(-len(record) % 512) + archive(member("y"), content=b"z")


@pytest.mark.parametrize(
    "record",
    [
        b"nonsense",
        b"5",
        b"0 a=b\n",
        b"3 \n",
        b"99999999 a=b\n",
        b"12 size=-1\n\n",
        b"10 size=x\n",
        b"8 a=bcd",
    ],
)
def test_broken_extended_headers_are_refused(record):
    with pytest.raises(TransferRefused):
        read(extended(record))


def test_extended_headers_rename():
    assert read(extended(b"15 path=new/na\n"))[0][0] == "new/na"
    assert read(extended(b"9 foo=ba\n"))[0][0] == "y"
    everywhere = bytearray(extended(b"15 path=new/na\n"))
    everywhere[156:157] = b"g"
    everywhere[148:156] = b" " * 8
    everywhere[148:156] = b"%06o\0 " % sum(everywhere[:512])
    assert read(bytes(everywhere))[0][0] == "y"


def test_headers_are_told_from_other_blocks():
    assert is_header(archive(member("x"))[:512])
    for block in (b"", bytes(512), b"x" * 512, archive(member("x"))[:511], damaged({0: b"x"})[1:513]):
        assert not is_header(block)


@given(st.binary(max_size=2000), st.integers(0, 1500), st.integers(0, 40))
def test_no_bytes_do_worse_than_a_refusal(noise, place, length):
    data = archive(member("a/b"), member("l", tarfile.SYMTYPE, "t"), content=b"c" * 100)
    for hostile in (noise, data[:place] + noise[:length] + data[place + length :]):
        try:
            found = read(hostile)
        except TransferRefused:
            continue
        assert all(".." not in name.split("/") and not name.startswith("/") for name, *_ in found)
