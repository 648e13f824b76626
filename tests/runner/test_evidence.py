"""What is uploaded of a trial's folder, whose names and contents a sandbox chose."""

from __future__ import annotations

import os
from pathlib import Path

from argo_harbor.bundle.trust import is_safe_path
from argo_harbor.runner import evidence
from argo_harbor.runner.evidence import Uploads
from argo_harbor.store.base import Store
from argo_harbor.store.directory import DirectoryStore
from tests.support.stores import Counting


def upload(store: Store, folder: Path, prefix: str, secrets: tuple[str, ...] = ()) -> tuple[str, ...]:
    uploads = Uploads(store, prefix, secrets)
    uploads.add(folder)
    return uploads.names


def test_regular_files_only(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    (folder / "agent").mkdir(parents=True)
    (folder / "agent" / "log.txt").write_text("hello")
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "loop").symlink_to(".")
    os.mkfifo(folder / "pipe")
    store = DirectoryStore(tmp_path / "store")
    assert upload(store, folder, "runs/r/") == ("agent/log.txt",)
    assert store.get("runs/r/agent/log.txt") == b"hello"
    assert upload(store, tmp_path / "absent", "runs/r/") == ()


def test_odd_names_become_names_that_every_store_takes(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    folder.mkdir()
    names = [b"new\nline", b"back\\slash", b"\xff\xfe", b"n" * 255, b"percent%41", "naïve".encode()]
    for name in names:
        Path(os.fsdecode(os.path.join(os.fsencode(folder), name))).write_bytes(name)
    store = DirectoryStore(tmp_path / "store")
    stored = upload(store, folder, "t/")
    assert len(stored) == len(names)
    assert all(is_safe_path(name) for name in stored)
    assert {store.get(f"t/{name}") for name in stored} == set(names)


def test_names_that_become_one_stay_apart(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    folder.mkdir()
    for tail in ("a", "b"):
        (folder / ("n" * 220 + tail)).write_text(tail)
    store = DirectoryStore(tmp_path / "store")
    stored = upload(store, folder, "t/")
    assert sorted(store.get(f"t/{name}") for name in stored) == [b"a", b"b"]


def test_no_file_comes_to_lie_where_another_path_needs_a_folder(store: Store, tmp_path: Path) -> None:
    """A sandbox that chose its names so would otherwise lose its trial to a fault of the store."""
    folder = tmp_path / "trial"
    folder.mkdir()
    for first, second in ((b"\xff", b"%FF"), (b"n" * 201, b"n" * 202), (b"%FF%41", b"%FFA")):
        Path(os.fsdecode(os.path.join(os.fsencode(folder), first))).write_bytes(first)
        below = Path(os.fsdecode(os.path.join(os.fsencode(folder), second)))
        below.mkdir()
        (below / "file").write_bytes(second)
    stored = upload(store, folder, "t/")
    assert len({store.get(f"t/{name}") for name in stored}) == 6


def test_a_path_is_no_longer_than_a_store_takes(store: Store, tmp_path: Path) -> None:
    deep = tmp_path / "trial"
    for number in range(12):
        deep = deep / f"{number}{'ü' * 90}"
    deep.mkdir(parents=True)
    for name in ("a", "b"):
        (deep / name).write_text(name)
    stored = upload(store, tmp_path / "trial", "t/")
    assert [len(name.encode()) <= evidence.MAX_PATH for name in stored] == [True, True]
    assert sorted(store.get(f"t/{name}") for name in stored) == [b"a", b"b"]


def test_secrets_are_blotted_out(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    folder.mkdir()
    (folder / "log").write_bytes(b"key=abcdefgh and abcdef\n\0binary abcdefgh")
    store = DirectoryStore(tmp_path / "store")
    upload(store, folder, "t/", ("abcdefgh", "abcdef"))
    assert store.get("t/log") == b"key=*** and ***\n\0binary ***"
    one = Uploads(store, "t/one/", ("abcdef",))
    one.add_file(folder / "log")
    assert one.names == ("log",)
    assert b"abcdef" not in store.get("t/one/log")


def test_a_packed_half_comes_back_as_it_was_but_for_secrets_and_links(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    (folder / "artifacts" / "empty").mkdir(parents=True)
    odd = folder / "artifacts" / "odd\nname"
    odd.write_text("secret-value")
    odd.chmod(0o755)
    (folder / "link").symlink_to("/etc/passwd")
    evidence.pack(folder, tmp_path / "half.tar.gz", ("secret-value",))
    evidence.unpack(tmp_path / "half.tar.gz", tmp_path / "back")
    back = tmp_path / "back"
    assert (back / "artifacts" / "odd\nname").read_text() == "***"
    assert (back / "artifacts" / "odd\nname").stat().st_mode & 0o111
    assert (back / "artifacts" / "empty").is_dir()
    assert not os.path.lexists(back / "link")


def test_a_file_is_stored_again_only_when_it_changed(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    (folder / "agent").mkdir(parents=True)
    for name in ("agent/log", "other"):
        (folder / name).write_text("one")
    store = Counting(DirectoryStore(tmp_path / "store"))
    uploads = Uploads(store, "t/")
    uploads.add(folder / "agent", "agent/")
    uploads.add(folder)
    (folder / "agent/log").write_text("another")
    uploads.add(folder)
    assert store.written == ["t/agent/log", "t/other", "t/agent/log"]
    assert uploads.names == ("agent/log", "other")
    assert store.get("t/agent/log") == b"another"
