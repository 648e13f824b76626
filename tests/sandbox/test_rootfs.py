"""Images as archives from strangers: what becomes a file, what never does, and what every container gets."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from argo_harbor.sandbox import rootfs
from argo_harbor.sandbox.base import TransferRefused
from argo_harbor.sandbox.rootfs import receive_rootfs
from argo_harbor.sandbox.scratch import sandbox_id
from argo_harbor.sandbox.transfer import PipeReader
from tests.sandbox.ordinary import as_ordinary_user

KINDS = {
    "file": tarfile.REGTYPE, "folder": tarfile.DIRTYPE, "link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE,
    "device": tarfile.CHRTYPE, "pipe": tarfile.FIFOTYPE,
}  # fmt: skip
type Entry = tuple[str, str] | tuple[str, str, str] | tuple[str, str, str, int]


def archive(path: Path, entries: Iterable[Entry]) -> Path:
    """Entries are (kind, name, content or target, mode)."""
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as out:
        for kind, name, *rest in entries:
            info = tarfile.TarInfo(name)
            info.type, info.mode, info.uid = KINDS[kind], 0o755, 12345
            text = str(rest[0]) if rest else ""
            if len(rest) > 1:
                info.mode = int(rest[1])
            if kind == "file":
                info.size = len(text.encode())
            else:
                info.linkname = text
            if kind == "device":
                info.devmajor, info.devminor = 1, 3
            out.addfile(info, io.BytesIO(text.encode()) if kind == "file" else None)
    return path


def lay_out(folder: Path, *entries: Entry, workdir: str = "/") -> Path:
    target = folder / "root"
    with PipeReader(os.open(archive(folder / "image.tar", entries), os.O_RDONLY), 10) as pipe:
        receive_rootfs(pipe, target, workdir=workdir)
    return target


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_an_image_becomes_a_folder_that_sandboxes_own(tmp_path):
    root = lay_out(
        tmp_path,
        ("folder", "./usr", "", 0o555),
        ("file", "usr/tool", "#!", 0o6755),
        ("hard", "usr/same", "usr/tool"),
        ("link", "bin", "/usr"),
        ("file", "etc/shadow", "secret", 0o000),
        ("device", "usr/null"),
        ("pipe", "usr/pipe"),
        ("file", "deep/er/file", "x", 0o640),
        ("file", "deep/er/file", "again", 0o644),
    )
    assert (root / "usr/tool").read_text() == "#!"
    assert mode(root / "usr/tool") == 0o755, "set-user-id survived"
    assert (root / "usr/same").stat().st_ino == (root / "usr/tool").stat().st_ino
    assert (root / "bin").readlink() == Path("/usr")
    assert mode(root / "usr") == 0o755
    assert mode(root / "etc/shadow") == 0o400
    assert (root / "deep/er/file").read_text() == "again"
    assert sorted(path.name for path in (root / "usr").iterdir()) == ["same", "tool"]
    owners = {path.lstat().st_uid for path in [root, *root.rglob("*")]}
    assert owners == {os.getuid() if sandbox_id() is None else sandbox_id()}


def test_every_container_has_the_usual_folders_and_its_own_hosts(tmp_path):
    root = lay_out(
        tmp_path,
        ("link", "proc", "/oldroot/proc"),
        ("link", "dev", "../../.."),
        ("link", "etc", "/etc"),
        ("link", "run", "/elsewhere"),
        ("folder", "tmp", "", 0o700),
        ("file", "var", "no folder"),
        workdir="/srv/../app/here",
    )
    for name in ("proc", "dev", "etc"):
        assert (root / name).is_dir()
        assert not (root / name).is_symlink()
    assert (root / "etc/hosts").read_text().startswith("127.0.0.1\tlocalhost\n")
    assert (root / "run").is_symlink()
    assert (root / "var").read_text() == "no folder"
    assert (mode(root / "tmp"), mode(root / "root"), mode(root / "logs/verifier")) == (0o1777, 0o700, 0o777)
    assert (root / "app/here").is_dir()


def test_a_resolver_of_the_builder_is_not_the_sandboxes(tmp_path):
    root = lay_out(
        tmp_path, ("file", "etc/resolv.conf", "nameserver 9.9.9.9"), ("file", "etc/hosts", "theirs")
    )
    assert sorted(path.name for path in (root / "etc").iterdir()) == ["hostname", "hosts"]
    assert "localhost" in (root / "etc/hosts").read_text()


@pytest.mark.parametrize("workdir", ["../../../outside", "/../outside", "link/outside", "/link/outside"])
def test_a_working_folder_stays_inside(tmp_path, workdir):
    root = lay_out(tmp_path, ("link", "link", "../.."), workdir=workdir)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["image.tar", "root"]
    assert (root / "link").is_symlink()


OUTSIDE = [
    [("file", "../outside", "x")],
    [("file", "/outside", "x")],
    [("file", "a/../../outside", "x")],
    [("link", "a", ".."), ("file", "a/outside", "x")],
    [("link", "a", ".."), ("folder", "a/outside")],
    [("link", "a", ".."), ("hard", "outside", "a/image.tar")],
    [("hard", "outside", "../image.tar")],
    [("hard", "outside", "missing")],
    [("folder", "a"), ("hard", "outside", "a")],
    [("hard", "outside", "")],
    [("folder", "a"), ("file", "a", "x")],
    [("file", "a", "x"), ("folder", "a")],
    [("file", "a", "x"), ("file", "a/b", "x")],
]


@pytest.mark.parametrize("entries", OUTSIDE, ids=lambda entries: " ".join(":".join(e[:3]) for e in entries))
def test_nothing_leads_out_of_the_folder(tmp_path, entries):
    with pytest.raises(TransferRefused):
        lay_out(tmp_path, *entries)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["image.tar", "root"]
    assert not (tmp_path / "root" / "outside").exists()


def test_an_archive_that_is_cut_short_is_refused(tmp_path):
    whole = archive(tmp_path / "whole.tar", [("file", "a", "x" * 5000)])
    cut = tmp_path / "cut.tar"
    cut.write_bytes(whole.read_bytes()[:2000])
    with PipeReader(os.open(cut, os.O_RDONLY), 10) as pipe, pytest.raises(TransferRefused, match="cut short"):
        receive_rootfs(pipe, tmp_path / "root")


@pytest.mark.parametrize(("limit", "value"), [("MAX_BYTES", 9), ("MAX_ENTRIES", 1)])
def test_an_image_cannot_fill_the_disk(tmp_path, monkeypatch, limit, value):
    monkeypatch.setattr(rootfs, limit, value)
    with pytest.raises(TransferRefused, match="more than"):
        lay_out(tmp_path, ("file", "a", "12345"), ("file", "b", "12345"))


def test_an_ordinary_user_lays_out_what_belongs_to_others(tmp_path):
    def check() -> None:
        folder = Path("/tmp") / f"argo-harbor-rootfs-{os.getpid()}"
        folder.mkdir()
        root = lay_out(
            folder, ("folder", "closed", "", 0o000), ("file", "closed/in", "x", 0o000), ("link", "l", "x")
        )
        assert (root / "closed/in").read_text() == "x"
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        folder.rmdir()

    as_ordinary_user(check)
