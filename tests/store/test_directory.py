from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from argo_harbor.errors import PlatformError
from argo_harbor.store.base import KeyNotFound
from argo_harbor.store.directory import DirectoryStore


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "store")


def test_what_is_put_is_got(store: DirectoryStore, tmp_path: Path) -> None:
    store.put("runs/r/state.json", b"{}")
    (tmp_path / "log").write_bytes(b"x" * 3_000_000)
    store.put_file("runs/r/log", tmp_path / "log")
    assert store.get("runs/r/state.json") == b"{}"
    store.get_file("runs/r/log", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"x" * 3_000_000
    assert store.exists("runs/r/log")
    assert store.name == str(tmp_path / "store")


def test_a_missing_key_says_so(store: DirectoryStore, tmp_path: Path) -> None:
    store.put("a/b", b"1")
    for key in ("a/c", "a", "a/b/c", "z"):
        with pytest.raises(KeyNotFound):
            store.get(key)
        with pytest.raises(KeyNotFound):
            store.get_file(key, tmp_path / "out")
        assert not store.exists(key)


def test_put_replaces_whole(store: DirectoryStore) -> None:
    store.put("k", b"a long value")
    store.put("k", b"short")
    assert store.get("k") == b"short"


@pytest.mark.parametrize("key", ["../x", "/etc/passwd", "a/../../x", "a//b", "", "a/./b", "a/\0"])
def test_a_key_never_leaves_the_root(store: DirectoryStore, key: str) -> None:
    with pytest.raises(ValueError, match="no key of a store"):
        store.put(key, b"x")
    with pytest.raises(ValueError, match="no key of a store"):
        store.get(key)


def test_list_is_sorted_and_keeps_to_the_prefix(store: DirectoryStore) -> None:
    for key in ("runs/b/2", "runs/a/1", "runs/ab", "tasks/x", "runs/a/0"):
        store.put(key, key.encode())
    assert [entry.key for entry in store.list("runs/")] == ["runs/a/0", "runs/a/1", "runs/ab", "runs/b/2"]
    assert [entry.key for entry in store.list("runs/a")] == ["runs/a/0", "runs/a/1", "runs/ab"]
    assert [entry.key for entry in store.list("nothing/")] == []
    found = next(iter(store.list("tasks/")))
    assert (found.key, found.size) == ("tasks/x", 7)
    assert found.modified > 0


def test_delete_twice_is_no_error(store: DirectoryStore) -> None:
    store.put("k", b"1")
    store.delete("k")
    store.delete("k")
    assert not store.exists("k")


def test_a_write_that_fails_leaves_the_old_value_and_no_rest(tmp_path: Path) -> None:
    """A file-size limit stands in for a full disk: the write fails in the middle."""
    store = DirectoryStore(tmp_path / "store")
    store.put("runs/r/run.json", b"old")
    program = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from argo_harbor.store.directory import DirectoryStore\n"
        "from argo_harbor.errors import PlatformError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n"
        "    DirectoryStore(Path(sys.argv[1])).put('runs/r/run.json', b'x' * 5000)\n"
        "except PlatformError as error:\n"
        "    print(error.code, error.hint)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "store")], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("store_write_failed free some space")
    assert store.get("runs/r/run.json") == b"old"
    assert os.listdir(tmp_path / "store/runs/r") == ["run.json"]


def test_a_store_below_a_file_is_an_error_with_a_code(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PlatformError) as caught:
        DirectoryStore(tmp_path / "file").put("k", b"1")
    assert caught.value.code == "store_write_failed"


def test_what_a_killed_write_leaves_is_no_object(store: DirectoryStore) -> None:
    """Nor does it lie where a bundle is, in which every file counts."""
    store.put("runs/r/agent-eval-results/summary.json", b"{}")
    program = (
        "import os, pathlib, signal, sys\n"
        "from argo_harbor.store.directory import DirectoryStore\n"
        "store = DirectoryStore(pathlib.Path(sys.argv[1]))\n"
        "store._write('runs/r/agent-eval-results/x', lambda out: os.kill(os.getpid(), signal.SIGKILL))\n"
    )
    assert subprocess.run([sys.executable, "-c", program, str(store.root)], check=False).returncode < 0
    assert [entry.key for entry in store.list("")] == ["runs/r/agent-eval-results/summary.json"]
    assert os.listdir(store.path("runs/r/agent-eval-results")) == ["summary.json"]
    assert len(list(store.root.glob(".unfinished/*"))) == 1


@pytest.mark.parametrize("name", [".tmp-notes", ".unfinished", ".unfinished/x"])
def test_names_that_a_sandbox_chose_are_listed(store: DirectoryStore, name: str) -> None:
    store.put(f"runs/r/trials/0/0/0-00000000/artifacts/{name}", b"x")
    assert [entry.key for entry in store.list("runs/r/trials/")] == [
        f"runs/r/trials/0/0/0-00000000/artifacts/{name}"
    ]


def test_a_store_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    """A name longer than any file system takes stands in for a closed folder, which root can read."""
    store = DirectoryStore(tmp_path / ("s" * 300))
    for read in (
        lambda: store.get("runs/r"),
        lambda: store.get_file("runs/r", tmp_path / "out"),
        lambda: store.open("runs/r"),
        lambda: list(store.list("runs/")),
    ):
        with pytest.raises(PlatformError, match="cannot read") as found:
            read()
        assert found.value.code == "store_unreadable"


def test_old_rests_of_killed_writes_are_removed_and_young_ones_are_not(store: DirectoryStore) -> None:
    folder = store.root / ".unfinished"
    folder.mkdir(parents=True)
    (folder / "old").write_bytes(b"x")
    (folder / "young").write_bytes(b"x")
    os.utime(folder / "old", (1, 1))
    store.put("k", b"1")
    assert os.listdir(folder) == ["young"]
