"""Copies and streams of the embedded store."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from argo_harbor.errors import PlatformError
from argo_harbor.store.base import KeyNotFound
from argo_harbor.store.directory import DirectoryStore


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    store = DirectoryStore(tmp_path)
    store.put("a/one", b"1")
    return store


def names(store: DirectoryStore) -> list[str]:
    return sorted(path.name for path in store.root.rglob("*") if path.is_file())


def test_a_copy_is_the_same_object(store: DirectoryStore) -> None:
    store.copy("a/one", "b/c/two")
    assert store.get("b/c/two") == b"1"
    assert os.path.samefile(store.path("a/one"), store.path("b/c/two"))
    assert store.path("a/one").stat().st_mode & 0o222 == 0
    store.copy("a/one", "b/c/two")
    assert names(store) == ["one", "two"]


def test_replacing_one_name_leaves_the_other(store: DirectoryStore) -> None:
    store.copy("a/one", "b/two")
    store.put("a/one", b"new")
    assert store.get("b/two") == b"1"
    store.copy("a/one", "b/two")
    assert store.get("b/two") == b"new"
    assert names(store) == ["one", "two"]


def test_bytes_move_where_links_cannot_be_made(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    store.copy("a/one", "b/two")
    assert store.get("b/two") == b"1"
    assert not os.path.samefile(store.path("a/one"), store.path("b/two"))


def test_what_is_not_there(store: DirectoryStore) -> None:
    with pytest.raises(KeyNotFound):
        store.copy("a", "b")
    with pytest.raises(KeyNotFound):
        store.open("a/none")
    with pytest.raises(KeyNotFound):
        store.open("a")


def test_open_streams(store: DirectoryStore) -> None:
    with store.open("a/one") as source:
        assert source.read() == b"1"


def test_deleting_a_folder_is_a_write_that_failed(store: DirectoryStore) -> None:
    with pytest.raises(PlatformError) as caught:
        store.delete("a")
    assert caught.value.code == "store_write_failed"
