"""What every store does, whatever it is made of."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from argo_harbor.store import s3_listing
from argo_harbor.store.base import KeyNotFound, Store
from argo_harbor.store.s3 import PART_BYTES

ODD_NAMES = (
    "a b",
    "a+b",
    "a%20b",
    "a%2Fb",
    "ä/ö€😀",
    "x&y<z>",
    "q?x=1#f",
    "back\\slash",
    "trailing.",
    "...",
    "..x",
    ".hidden/..x/x..",
    "'quo\"te",
    "~t*()!,;:@=$",
    " leading",
    "trailing ",
    "{{workflow.name}}",
    "n" * 200,
)


def test_what_is_put_is_got(store: Store, tmp_path: Path) -> None:
    store.put("runs/r/state.json", b"{}")
    store.put("runs/r/empty", b"")
    (tmp_path / "log").write_bytes(b"x" * 3_000_000)
    store.put_file("runs/r/log", tmp_path / "log")
    assert store.get("runs/r/state.json") == b"{}"
    assert store.get("runs/r/empty") == b""
    store.get_file("runs/r/log", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"x" * 3_000_000
    with store.open("runs/r/log") as source:
        assert source.read(5) == b"xxxxx"
        assert len(source.read()) == 2_999_995
        assert source.read() == b""
    with store.open("runs/r/empty") as source:
        assert source.read() == b""
    assert store.exists("runs/r/log")


def test_a_large_file_comes_back_whole(store: Store, tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(bytes(range(251)) * (2 * PART_BYTES // 251 + 1))
    store.put_file("large", large)
    store.copy("large", "copied/large")
    store.get_file("copied/large", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == large.read_bytes()
    assert [entry.size for entry in store.list("")] == [large.stat().st_size] * 2


def test_a_missing_key_says_so(store: Store, tmp_path: Path) -> None:
    store.put("a/b", b"1")
    for key in ("a/c", "a", "a/b/c", "z"):
        for read in (
            lambda key=key: store.get(key),
            lambda key=key: store.get_file(key, tmp_path / "out"),
            lambda key=key: store.open(key),
            lambda key=key: store.copy(key, "t"),
            lambda key=key: store.copy(key, key),
        ):
            with pytest.raises(KeyNotFound):
                read()
        assert not store.exists(key)
    assert list(tmp_path.glob("*out*")) == []
    assert not store.exists("t")


def test_put_and_copy_replace_whole(store: Store) -> None:
    store.put("k", b"a long value")
    store.put("k", b"short")
    assert store.get("k") == b"short"
    store.put("other", b"a long value")
    store.copy("other", "k")
    assert store.get("k") == b"a long value"
    store.put("other", b"changed later")
    assert store.get("k") == b"a long value"
    store.copy("k", "k")
    assert store.get("k") == b"a long value"


@pytest.mark.parametrize(
    "key", ["../x", "/etc/passwd", "a/../../x", "a//b", "", "a/./b", "a/\0", "a/", ".", "..", "a/.."]
)
def test_a_key_never_leaves_the_root(store: Store, tmp_path: Path, key: str) -> None:
    store.put("k", b"1")
    (tmp_path / "file").write_bytes(b"x")
    for use in (
        lambda: store.put(key, b"x"),
        lambda: store.put_file(key, tmp_path / "file"),
        lambda: store.get(key),
        lambda: store.get_file(key, tmp_path / "out"),
        lambda: store.open(key),
        lambda: store.copy("k", key),
        lambda: store.copy(key, "k"),
        lambda: store.exists(key),
        lambda: store.delete(key),
    ):
        with pytest.raises(ValueError, match="no key of a store"):
            use()
    assert [entry.key for entry in store.list("")] == ["k"]


@pytest.mark.parametrize("prefix", ["../", "a/../../", "a//b"])
def test_a_listing_never_leaves_the_root(store: Store, prefix: str) -> None:
    with pytest.raises(ValueError, match="no key of a store"):
        list(store.list(prefix))


def test_odd_names_are_names_like_others(store: Store, tmp_path: Path) -> None:
    for name in ODD_NAMES:
        store.put(f"odd/{name}", name.encode())
        store.copy(f"odd/{name}", f"copied/{name}")
    assert [entry.key for entry in store.list("odd/")] == sorted(f"odd/{name}" for name in ODD_NAMES)
    for entry in store.list("copied/"):
        assert store.get(entry.key) == entry.key.removeprefix("copied/").encode()
        store.delete(entry.key)
    assert list(store.list("copied/")) == []


def test_list_is_sorted_and_keeps_to_the_prefix(store: Store) -> None:
    for key in ("runs/b/2", "runs/a/1", "runs/ab", "tasks/x", "runs/a/0", "runs/a-b/0", "runs/a.b"):
        store.put(key, key.encode())
    assert [entry.key for entry in store.list("runs/")] == [
        "runs/a-b/0",
        "runs/a.b",
        "runs/a/0",
        "runs/a/1",
        "runs/ab",
        "runs/b/2",
    ]
    assert [entry.key for entry in store.list("runs/a/")] == ["runs/a/0", "runs/a/1"]
    assert [entry.key for entry in store.list("runs/ab")] == ["runs/ab"]
    assert [entry.key for entry in store.list("nothing/")] == []
    assert [entry.key for entry in store.list("tasks/x/")] == []
    found = next(iter(store.list("tasks/")))
    assert (found.key, found.size) == ("tasks/x", 7)


def test_folders_are_named_without_what_is_in_them(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_listing, "PAGE", 2)
    for key in ("runs/b b/x", "runs/a/deep/y", "runs/a/z", "runs/file", "runs/c/1", "runs/ü/1", "other/x"):
        store.put(key, b"")
    assert list(store.folders("runs/")) == ["a", "b b", "c", "ü"]
    assert list(store.folders("runs/a/")) == ["deep"]
    assert list(store.folders("")) == ["other", "runs"]
    assert list(store.folders("none/")) == list(store.folders("runs/file/")) == []
    with pytest.raises(ValueError, match="no key"):
        list(store.folders("../"))


def test_a_long_list_is_whole(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a page of an S3 server; names that sort differently with and without what follows a slash."""
    monkeypatch.setattr(s3_listing, "PAGE", 20)
    folders = ("a", "a-b", "a.b", "a b", "ab", "a/b", "ä")
    keys = sorted(f"runs/{folder}/{number:05}/started.json" for number in range(30) for folder in folders)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: store.put(key, b""), keys))
    assert [entry.key for entry in store.list("runs/")] == keys


def test_delete_twice_is_no_error(store: Store) -> None:
    store.put("a/k", b"1")
    store.delete("a/k")
    store.delete("a/k")
    store.delete("never/was")
    assert not store.exists("a/k")
    assert list(store.list("")) == []


def test_the_clock_is_that_of_the_listing(store: Store) -> None:
    before = store.clock()
    store.put("k", b"1")
    (found,) = store.list("")
    assert before - 1 <= found.modified <= store.clock() + 1
    assert abs(store.clock() - time.time()) < 5


def test_a_reader_sees_old_or_new_bytes_never_a_mixture(store: Store) -> None:
    values = [bytes([number]) * 300_000 for number in range(4)]
    store.put("k", values[0])
    with ThreadPoolExecutor(4) as pool:
        writes = [pool.submit(store.put, "k", values[number % 4]) for number in range(24)]
        seen = [store.get("k") for _ in range(24)]
        for write in writes:
            write.result()
    assert set(seen) <= set(values)


def test_the_name_says_where_it_is(store: Store, tmp_path: Path) -> None:
    assert store.name.startswith((str(tmp_path), "http://127.0.0.1:"))
    assert not store.name.endswith("/")
