"""Scratch folders: found again, reachable for sandboxes, removable whatever lies in them."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from argo_harbor.sandbox import scratch
from argo_harbor.sandbox.scratch import make_owned_folder, remove_scratch, scratch_folder
from tests.sandbox.ordinary import as_ordinary_user


def test_the_same_name_gives_the_same_folder(tmp_path):
    first = scratch_folder("again", tmp_path)
    try:
        assert scratch_folder("again", tmp_path) == first
        assert stat.S_IMODE(first.stat().st_mode) == 0o711
        assert scratch.is_reachable(first)
    finally:
        remove_scratch(first)


def test_a_closed_home_is_avoided_as_root(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "sandbox_id", lambda: 60600)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "open"))
    (tmp_path / "open").mkdir()
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    assert scratch_folder("run-1", closed) == tmp_path / "open" / "argo-harbor-run-1"


def test_an_ordinary_user_keeps_the_preferred_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "sandbox_id", lambda: None)
    assert scratch_folder("run-1", tmp_path / "made") == tmp_path / "made" / "run-1"


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_name_that_somebody_else_took_is_refused(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(scratch, "sandbox_id", lambda: None)
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o700)
    if kind == "file":
        (tmp_path / "run-1").touch()
    else:
        (tmp_path / "run-1").symlink_to(victim)
    with pytest.raises(PermissionError, match="run-1"):
        scratch_folder("run-1", tmp_path)
    assert stat.S_IMODE(victim.stat().st_mode) == 0o700


def test_removing_follows_no_link(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o500)
    (outside / "kept").write_text("kept")
    inside = tmp_path / "inside"
    (inside / "deep").mkdir(parents=True)
    (inside / "deep" / "link").symlink_to(outside)
    (inside / "link").symlink_to(outside)
    os.mkfifo(inside / "deep" / "pipe")
    remove_scratch(inside)
    assert not inside.exists()
    assert (outside / "kept").read_text() == "kept"
    assert stat.S_IMODE(outside.stat().st_mode) == 0o500


def test_nothing_to_remove_is_fine(tmp_path):
    remove_scratch(tmp_path / "never")


def test_a_very_deep_nest_is_removed(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    handle = os.open(root, os.O_RDONLY)
    for _ in range(400):
        os.mkdir("d", dir_fd=handle)
        inner = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(handle)
    remove_scratch(root)
    assert not root.exists()


def test_folders_without_permissions_are_removed():
    """As an ordinary user, for whom they matter."""

    def check() -> None:
        root = Path(tempfile.mkdtemp())
        inner = make_owned_folder(root / "a")
        make_owned_folder(inner / "b").joinpath("file").touch()
        (inner / "b").chmod(0)
        inner.chmod(0)
        (root / "c").mkdir()
        root.chmod(0)
        remove_scratch(root)
        assert not root.exists()

    as_ordinary_user(check)
