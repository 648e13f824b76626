"""Any archive is refused or comes out exactly as it says, and nothing outside of its folder is touched."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argo_harbor.errors import Refused
from argo_harbor.sources.bounds import MAX_DEPTH, MAX_FILES, MAX_FOLDERS, Bounds, TooMuch
from argo_harbor.sources.digest import digest_of
from argo_harbor.sources.unpack import unpack
from tests.support.trees import fast_folder

BUDGET = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Found(NamedTuple):
    """One file, folder or link of the surroundings."""

    mode: int
    content: bytes | str
    modified: int


def look(folder: Path) -> dict[str, Found]:
    found = {}
    for path in [folder, *folder.rglob("*")]:
        status = path.lstat()
        content: bytes | str = b""
        if path.is_symlink():
            content = os.readlink(path)
        elif path.is_file():
            content = path.read_bytes()
        found[str(path)] = Found(status.st_mode, content, status.st_mtime_ns)
    return found


class Place:
    """A folder to unpack in, with things around it that an escape would hit."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.inside = root / "inside"
        self.archive = root / "task.tar.gz"
        (root / "around" / "etc").mkdir(parents=True)
        (root / "around" / "etc" / "passwd").write_bytes(b"sentinel")
        (root / "x").write_bytes(b"sentinel")
        (root / "link").symlink_to("x")
        self.inside.mkdir()
        (self.inside / "x").write_bytes(b"sentinel")
        self._before = self._look()

    def _look(self) -> dict[str, Found]:
        return {
            path: found._replace(modified=0) if path == str(self.inside) else found
            for path, found in look(self.root).items()
            if path not in (str(self.root), str(self.archive)) and not path.startswith(f"{self.inside}/out")
        }

    def unpack(self, packed: bytes, digest: str) -> dict[str, bytes] | None:
        """What came out by path, links as the content behind them; None when it was refused."""
        self.archive.write_bytes(packed)
        out = self.inside / "out"
        refused = None
        try:
            unpack(self.archive, out, digest=digest)
        except Refused as error:
            refused = error
        assert self._look() == self._before
        if refused is not None:
            assert refused.code == "source_unreadable"
            assert refused.message.isprintable()
            assert not os.path.lexists(out)
            return None
        came = {}
        for folder, _, files in os.walk(out):
            for name in files:
                path = f"{folder}/{name}"
                assert os.path.realpath(path).startswith(f"{out}/")
                came[os.path.relpath(path, out)] = Path(path).read_bytes()
        shutil.rmtree(out)
        return came


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with fast_folder() as folder:
        yield Place(folder)


class Item(NamedTuple):
    """One entry to write, as a hostile writer may."""

    name: str
    kind: bytes
    target: str
    data: bytes
    mode: int
    pax: tuple[tuple[str, str], ...]


KINDS = {
    tarfile.REGTYPE: 8,
    tarfile.SYMTYPE: 4,
    tarfile.DIRTYPE: 1,
    tarfile.LNKTYPE: 1,
    tarfile.FIFOTYPE: 1,
    tarfile.CHRTYPE: 1,
    tarfile.BLKTYPE: 1,
    tarfile.CONTTYPE: 1,
    tarfile.AREGTYPE: 1,
}
NAMES = ("a", "b", "c", "..", ".", "", "x", "é", "e\u0301", "back\\slash", "line\nfeed", "n" * 130, "~", " ")
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join) | st.sampled_from(
    ["/etc/passwd", "../x", "../../x", "a/../../x", "\x1b[2J", "n" * 255, "n" * 256, "C:\\x", "a/b/c/d/e/f"]
)
pax_tricks = st.lists(
    st.tuples(
        st.sampled_from(["path", "linkpath", "size", "GNU.sparse.size", "GNU.sparse.name", "mtime", "uname"]),
        st.sampled_from(["a", "../x", "/etc/passwd", "0", "99999999999", "", "a\0b"]),
    ),
    max_size=2,
    unique_by=lambda record: record[0],
).map(tuple)
items = st.builds(
    Item,
    name=paths,
    kind=st.sampled_from([kind for kind, weight in KINDS.items() for _ in range(weight)]),
    target=paths,
    data=st.binary(max_size=20) | st.just(b"d" * 600),
    mode=st.integers(0, 0o7777),
    pax=st.just(()) | pax_tricks,
)
plain_items = st.builds(
    Item,
    name=st.lists(st.sampled_from(NAMES[:3] + NAMES[7:]), min_size=1, max_size=3).map("/".join),
    kind=st.sampled_from([tarfile.REGTYPE, tarfile.REGTYPE, tarfile.SYMTYPE]),
    target=st.lists(st.sampled_from(("a", "b", "..", ".", "é")), min_size=1, max_size=4).map("/".join),
    data=st.binary(max_size=20) | st.just(b"d" * 600),
    mode=st.integers(0, 0o7777),
    pax=st.just(()),
)


def write(entries: list[Item], form: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=form) as tar:
        for entry in entries:
            info = tarfile.TarInfo(entry.name)
            info.type, info.linkname, info.mode = entry.kind, entry.target, entry.mode
            info.pax_headers = dict(entry.pax)
            if entry.kind in (tarfile.REGTYPE, tarfile.CONTTYPE, tarfile.AREGTYPE):
                info.size = len(entry.data)
                tar.addfile(info, io.BytesIO(entry.data))
            else:
                tar.addfile(info)
    return out.getvalue()


def meant(entries: list[Item]) -> dict[str, bytes] | None:
    """What an archive of plain entries says, link contents included; None when it must be refused."""
    files: dict[str, bytes] = {}
    links: dict[str, str] = {}
    for entry in entries:
        parts = entry.name.split("/")
        if entry.name in files or entry.name in links:
            return None
        if any(part in ("", ".", "..") or len(part.encode()) > 255 for part in parts):
            return None
        if entry.kind == tarfile.REGTYPE:
            files[entry.name] = entry.data
        else:
            links[entry.name] = os.path.normpath(os.path.join("/task", *parts[:-1], entry.target))
    everything = {**files, **links}
    if any(
        "/".join(path.split("/")[:end]) in everything
        for path in everything
        for end in range(1, path.count("/") + 1)
    ):
        return None
    found = dict(files)
    for path, target in links.items():
        if not target.startswith("/task/") or target.removeprefix("/task/") not in files:
            return None
        found[path] = files[target.removeprefix("/task/")]
    return found


def climbs(entries: list[Item]) -> bool:
    """Whether a link goes up further than its folder is deep, which is refused even where it comes back."""
    for entry in entries:
        depth = entry.name.count("/")
        for part in entry.target.split("/") if entry.kind == tarfile.SYMTYPE else ():
            depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
            if depth < 0:
                return True
    return False


def digest(content: dict[str, bytes]) -> str:
    return digest_of(sorted((path, sha256(data).hexdigest()) for path, data in content.items()))


@given(entries=st.lists(plain_items, max_size=5))
@BUDGET
def test_plain_entries_come_out_exactly_or_not_at_all(place: Place, entries: list[Item]) -> None:
    expected = meant(entries)
    came = place.unpack(write(entries, tarfile.PAX_FORMAT), digest(expected or {}))
    if expected is None or climbs(entries) or not expected:
        assert came is None or came == expected
    else:
        assert came == expected


@given(
    entries=st.lists(items, max_size=5),
    form=st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT]),
)
@BUDGET
def test_hostile_entries_touch_nothing(place: Place, entries: list[Item], form: int) -> None:
    try:
        packed = write(entries, form)
    except ValueError:
        return  # the writer itself refuses a name that is too long for its format
    expected = meant(entries) if all(not entry.pax for entry in entries) else None
    came = place.unpack(packed, digest(expected or {}))
    if came is not None:
        assert came == (expected or {})
        assert all(entry.kind in (tarfile.REGTYPE, tarfile.SYMTYPE) for entry in entries)


def _good() -> tuple[bytes, dict[str, bytes]]:
    content = {"task.toml": b"x = 1\n", "tests/é\n\\": b"data" * 300, "n" * 120: b"", "tests/again": b""}
    content["tests/again"] = content["tests/é\n\\"]
    entries = [
        Item(path, tarfile.REGTYPE, "", data, 0o644, ())
        for path, data in content.items()
        if path != "tests/again"
    ]
    link = Item("tests/again", tarfile.SYMTYPE, "é\n\\", b"", 0o777, ())
    return write([*entries, link], tarfile.PAX_FORMAT), content


GOOD, CONTENT = _good()
PLAIN = gzip.decompress(GOOD)


def test_an_archive_that_is_cut_off_anywhere_is_refused(place: Place) -> None:
    assert place.unpack(GOOD, digest(CONTENT)) == CONTENT
    for end in range(len(GOOD)):
        assert place.unpack(GOOD[:end], digest(CONTENT)) is None, end


def test_a_tar_that_is_cut_off_anywhere_is_refused(place: Place) -> None:
    # All that matters is where the blocks begin and end, and what is around.
    ends = [end for at in range(0, len(PLAIN), 512) for end in (at, at + 1, at + 511)]
    last = len(PLAIN.rstrip(b"\0"))
    whole = last + -last % 512 + 1024
    for end in ends:
        came = place.unpack(gzip.compress(PLAIN[:end], 1), digest(CONTENT))
        assert came == (CONTENT if end >= whole and end % 512 == 0 else None), end


@given(
    changes=st.lists(st.tuples(st.integers(0, len(PLAIN) - 1), st.integers(0, 255)), min_size=1, max_size=4),
    packed=st.booleans(),
)
@BUDGET
def test_damaged_bytes_change_no_content(place: Place, changes: list[tuple[int, int]], packed: bool) -> None:
    data = bytearray(GOOD if packed else PLAIN)
    for at, value in changes:
        data[at % len(data)] = value
    came = place.unpack(bytes(data) if packed else gzip.compress(bytes(data), 1), digest(CONTENT))
    assert came in (None, CONTENT)


@pytest.mark.parametrize(
    "more",
    [
        lambda good: good + b"garbage",
        lambda good: good + gzip.compress(b"garbage"),
        lambda good: good + gzip.compress(PLAIN),
        lambda good: gzip.compress(PLAIN + PLAIN),
        lambda good: gzip.compress(PLAIN + bytes(1 << 20)),
        lambda good: gzip.compress(PLAIN.rstrip(b"\0") + b"\0" * 100),
        lambda good: good[:-8] + bytes(8),
        lambda good: PLAIN,
        lambda good: zlib.compress(PLAIN),
        lambda good: b"",
    ],
    ids=[
        "garbage",
        "packed garbage",
        "another archive",
        "another tar",
        "zeros without end",
        "half an end",
        "wrong checksum",
        "not packed",
        "packed otherwise",
        "empty",
    ],
)
def test_what_stands_behind_the_end_is_refused(place: Place, more: Callable[[bytes], bytes]) -> None:
    assert place.unpack(more(GOOD), digest(CONTENT)) is None


def test_parts_of_a_packed_file_are_one_archive(place: Place) -> None:
    parts = gzip.compress(PLAIN[:700]) + gzip.compress(PLAIN[700:])
    assert place.unpack(parts, digest(CONTENT)) == CONTENT


@pytest.mark.parametrize(
    ("extended", "kept"),
    [
        ({"path": "b"}, {"b": b"data"}),
        ({"path": "../x"}, None),
        ({"path": "b\0c"}, None),
        ({"size": "2"}, None),
        ({"GNU.sparse.realsize": "99999999999"}, None),
        ({"hdrcharset": "BINARY"}, None),
        ({"mtime": "1.5", "uname": "root"}, {"a": b"data"}),
    ],
    ids=str,
)
def test_extended_headers_change_nothing_that_is_not_read(
    place: Place, extended: dict[str, str], kept: dict[str, bytes] | None
) -> None:
    entry = Item("a", tarfile.REGTYPE, "", b"data", 0o644, tuple(extended.items()))
    assert place.unpack(write([entry], tarfile.PAX_FORMAT), digest(kept or {"a": b"data"})) == kept


@pytest.mark.parametrize("kind", [b"g", b"L", b"K", b"S", b"M", b"V", b"D", b"\0", b"7", b"z"])
def test_kinds_that_only_other_tools_know_are_refused(place: Place, kind: bytes) -> None:
    info = tarfile.TarInfo("a")
    info.type, info.size = kind, 1 << 40
    header = info.tobuf(tarfile.GNU_FORMAT)
    assert place.unpack(gzip.compress(header + bytes(2048)), digest({})) is None


@pytest.mark.parametrize(
    ("size", "problem"),
    [(3 << 30, "ends too early"), (5 << 30, "more than 4294967296"), (1 << 40, "not octal")],
)
def test_declared_sizes_are_not_believed(place: Place, size: int, problem: str) -> None:
    info = tarfile.TarInfo("a")
    info.size = size
    place.archive.write_bytes(gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + b"data"))
    with pytest.raises(Refused, match=problem):
        unpack(place.archive, place.inside / "out", digest="0" * 64)
    assert os.listdir(place.inside) == ["x"]


def test_a_link_has_no_content_and_an_end_no_header(place: Place) -> None:
    link = tarfile.TarInfo("b")
    link.type, link.linkname, link.size = tarfile.SYMTYPE, "a", 4
    first = tarfile.TarInfo("a")
    tar = first.tobuf(tarfile.USTAR_FORMAT) + link.tobuf(tarfile.USTAR_FORMAT) + b"data".ljust(512, b"\0")
    assert place.unpack(gzip.compress(tar + bytes(1024)), digest({"a": b"", "b": b""})) is None
    dangling = tarfile.TarInfo("x")
    dangling.type = b"x"
    tar = first.tobuf(tarfile.USTAR_FORMAT) + dangling.tobuf(tarfile.USTAR_FORMAT)
    assert place.unpack(gzip.compress(tar + bytes(1024)), digest({"a": b""})) is None


def test_a_name_that_only_this_folder_cannot_hold_is_refused(place: Place) -> None:
    path = "/".join(["n" * 250] * 16)
    entry = Item(path, tarfile.REGTYPE, "", b"", 0o644, ())
    packed = write([entry], tarfile.PAX_FORMAT)
    place.archive.write_bytes(packed)
    deep = place.inside / "out" / ("d" * 200)
    with pytest.raises(Refused, match="cannot hold"):
        unpack(place.archive, deep, digest=digest({path: b""}))
    shutil.rmtree(place.inside / "out")


def test_neither_entries_nor_folders_nor_names_are_without_end() -> None:
    bounds = Bounds()
    for number in range(MAX_FILES):
        bounds.take(f"tests/{number}", 0)
    with pytest.raises(TooMuch, match="more than 100000 files"):
        bounds.take("tests/one-more", 0)
    with pytest.raises(TooMuch, match="bytes of paths"):
        Bounds().take("a/" * 100 + "n" * (33 << 20), 0)
    with pytest.raises(TooMuch, match="folders deep"):
        Bounds().take("a/" * (MAX_DEPTH + 1) + "x", 0)
    folders = Bounds()
    for number in range(MAX_FOLDERS // 100):
        folders.take(f"{number}/" + "d/" * 99 + "x", 0)
    with pytest.raises(TooMuch, match=f"more than {MAX_FOLDERS} folders"):
        folders.take("one/more", 0)
