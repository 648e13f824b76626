"""What goes wrong on the way to a real S3 server: never is wrong or half content taken for whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from argo_harbor.errors import PlatformError
from argo_harbor.store import s3_client
from argo_harbor.store.base import KeyNotFound
from argo_harbor.store.s3 import PART_BYTES, S3Store
from tests.support.faultproxy import FaultProxy, proxy
from tests.support.s3server import S3Server
from tests.support.stores import open_s3

pytestmark = pytest.mark.services

DATA = bytes(range(256)) * 8000
"""2 MB: more than the pieces in which answers are read."""


@pytest.fixture
def between(s3_server: S3Server) -> Iterator[FaultProxy]:
    with proxy((s3_server.host, s3_server.port)) as running:
        yield running


@pytest.fixture
def direct(s3_server: S3Server) -> S3Store:
    """The same objects, on the straight way."""
    return open_s3(s3_server, root="faults")


@pytest.fixture
def s3(s3_server: S3Server, between: FaultProxy, direct: S3Store) -> Iterator[S3Store]:
    """A store behind the proxy. What one test leaves, the next must not see."""
    yield open_s3(s3_server, endpoint=between.endpoint, root="faults")
    for entry in list(direct.list("")):
        direct.delete(entry.key)


TRANSIENT = ("status:503", "status:500", "status:502", "status:429", "drop", "lose-answer")


@pytest.mark.parametrize("kind", TRANSIENT)
def test_a_passing_fault_is_not_seen(s3: S3Store, between: FaultProxy, tmp_path: Path, kind: str) -> None:
    for method in ("PUT", "GET", "HEAD", "DELETE"):
        between.add(kind, method, times=2)
    s3.put("k", DATA)
    assert s3.get("k") == DATA
    assert s3.exists("k")
    between.add(kind, "PUT", having="x-amz-copy-source")
    s3.copy("k", "copied")
    between.add(kind, "GET", having="list-type=2")
    assert [entry.key for entry in s3.list("")] == ["copied", "k"]
    between.add(kind, "GET")
    s3.get_file("copied", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == DATA
    s3.delete("k")
    assert not s3.exists("k")
    assert all(fault.hit == fault.times for fault in between.faults)


@pytest.mark.parametrize("kind", TRANSIENT)
def test_a_lasting_fault_is_named(s3: S3Store, between: FaultProxy, tmp_path: Path, kind: str) -> None:
    for method in ("PUT", "GET", "HEAD", "DELETE"):
        between.add(kind, method, times=1000)
    for write in (lambda: s3.put("k", b"1"), lambda: s3.copy("k", "l"), lambda: s3.delete("k")):
        with pytest.raises(PlatformError) as caught:
            write()
        assert caught.value.code == "store_write_failed"
    for read in (
        lambda: s3.get("k"),
        lambda: s3.get_file("k", tmp_path / "out"),
        lambda: s3.open("k"),
        lambda: s3.exists("k"),
        lambda: list(s3.list("")),
        s3.clock,
    ):
        with pytest.raises(PlatformError) as caught:
            read()
        assert caught.value.code == "store_unreadable"
        assert between.endpoint in caught.value.message
        assert "bucket harbor" in caught.value.message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["cut-request", "flip-request"])
def test_a_damaged_upload_never_becomes_an_object(
    s3: S3Store, between: FaultProxy, direct: S3Store, kind: str
) -> None:
    between.add(kind, "PUT", times=1000)
    with pytest.raises(PlatformError, match="cannot write k"):
        s3.put("k", DATA)
    assert not direct.exists("k")
    direct.put("k", b"old")
    with pytest.raises(PlatformError, match="cannot write k"):
        s3.put("k", DATA)
    assert direct.get("k") == b"old"
    between.faults.clear()
    between.add(kind, "PUT", times=2)
    s3.put("k", DATA)
    assert direct.get("k") == DATA


def test_an_answer_that_names_other_bytes_is_not_believed(s3: S3Store, between: FaultProxy) -> None:
    fault = between.add("etag", "PUT", times=1000)
    with pytest.raises(PlatformError, match="the server holds other bytes than were sent"):
        s3.put("k", DATA)
    assert fault.hit > 1


@pytest.mark.parametrize("kind", ["flip-answer", "short-answer", "cut-answer", "end-answer"])
def test_damaged_answers_are_never_content(
    s3: S3Store, between: FaultProxy, tmp_path: Path, kind: str
) -> None:
    s3.put("k", DATA)
    (tmp_path / "out").write_bytes(b"old")
    between.add(kind, "GET", times=1000)
    with pytest.raises(PlatformError, match="cannot read k"):
        s3.get("k")
    if kind in (
        "flip-answer",
        "short-answer",
    ):  # the others get further with each request, until all is there
        with pytest.raises(PlatformError, match="cannot read k"):
            s3.get_file("k", tmp_path / "out")
        assert (tmp_path / "out").read_bytes() == b"old"
        with s3.open("k") as source, pytest.raises(PlatformError, match="cannot read k"):
            source.read()
    between.faults.clear()
    between.add(kind, "GET", times=2)
    assert s3.get("k") == DATA
    between.faults.clear()
    between.add(kind, "GET", times=2)
    s3.get_file("k", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == DATA
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_broken_download_goes_on_where_it_stopped(s3: S3Store, between: FaultProxy, tmp_path: Path) -> None:
    s3.put("k", DATA)
    between.add("end-answer", "GET", times=3)
    s3.get_file("k", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == DATA
    begins = [
        int(found[1]) for head in between.requests if (found := re.search(rb"[Rr]ange: bytes=(\d+)-\r", head))
    ]
    assert len(begins) == 3
    assert 0 < begins[0] < begins[1] < begins[2]
    between.add("end-answer", "GET", times=2)
    with s3.open("k") as source:
        assert source.read() == DATA


def test_an_object_that_is_replaced_meanwhile_is_read_anew_or_refused(
    s3: S3Store, between: FaultProxy, direct: S3Store, tmp_path: Path
) -> None:
    s3.put("k", DATA)
    between.add("end-answer", "GET")
    with s3.open("k") as source:
        first = source.read(1000)
        direct.put("k", DATA[::-1])
        assert first == DATA[:1000]
        with pytest.raises(PlatformError, match="replaced while it was read"):
            source.read()
    between.add("etag", "GET", having="range:")
    between.add("end-answer", "GET")
    s3.get_file("k", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == DATA[::-1]


def test_a_large_upload_repeats_only_the_part_that_broke(
    s3: S3Store, between: FaultProxy, direct: S3Store, tmp_path: Path
) -> None:
    large = tmp_path / "large"
    large.write_bytes(b"part" * (PART_BYTES // 4) * 2 + b"end")
    between.add("drop", "PUT", having="partNumber=2")
    between.add("flip-request", "PUT", having="partNumber=3")
    between.add("status:503", "POST", having="uploads")
    # The upload is ended, the answer is lost, and the second request finds no upload.
    between.add("lose-answer", "POST", having="uploadId=")
    s3.put_file("large", large)
    assert [between.seen("PUT", f"partNumber={number}") for number in (1, 2, 3)] == [1, 2, 2]
    direct.get_file("large", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == large.read_bytes()


def test_an_upload_that_fails_leaves_neither_object_nor_parts(
    s3: S3Store, between: FaultProxy, direct: S3Store, tmp_path: Path, s3_server: S3Server
) -> None:
    large = tmp_path / "large"
    large.write_bytes(b"x" * (PART_BYTES + 1))
    between.add("status:503", "PUT", having="partNumber=2", times=1000)
    with pytest.raises(PlatformError, match="cannot write large"):
        s3.put_file("large", large)
    assert not direct.exists("large")
    assert between.seen("DELETE", "uploadId=") == 1


def test_bytes_that_rot_in_the_server_are_noticed(s3: S3Store, s3_server: S3Server, tmp_path: Path) -> None:
    s3.put("k", DATA)
    stored = s3_server.folder / s3_server.bucket / "faults" / "k"
    with stored.open("r+b") as out:
        out.seek(1_000_000)
        out.write(b"!")
    for read in (
        lambda: s3.get("k"),
        lambda: s3.get_file("k", tmp_path / "out"),
        lambda: s3.open("k").read(),
    ):
        with pytest.raises(PlatformError, match="do not have its digest"):
            read()
    assert list(tmp_path.iterdir()) == []


def test_a_slow_answer_ends(
    s3_server: S3Server, between: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_client, "READ_SECONDS", 0.3)
    s3 = open_s3(s3_server, endpoint=between.endpoint)
    s3.put("k", b"1")
    between.add("slow", "GET", times=1)
    assert s3.get("k") == b"1"
    between.add("slow", "GET", times=1000)
    with pytest.raises(PlatformError, match="does not answer"):
        s3.get("k")


def test_the_servers_wish_to_wait_is_heard(s3: S3Store, between: FaultProxy) -> None:
    between.add("status:503", "PUT", headers=b"Retry-After: 3600\r\n")
    s3.put("k", b"1")  # at most as long as its patience allows
    assert between.seen("PUT") == 2


def test_a_missing_key_is_no_fault(s3: S3Store, between: FaultProxy) -> None:
    s3.put("k", b"1")
    before = len(between.requests)
    with pytest.raises(KeyNotFound):
        s3.get("missing")
    assert len(between.requests) == before + 1
