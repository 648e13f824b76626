"""Files in and out: modes and links, and downloads that never leave their folder."""

from __future__ import annotations

import asyncio
import io
import os
import stat
import tarfile
import threading
from pathlib import Path

import pytest

from argo_harbor.sandbox import bubblewrap, transfer
from argo_harbor.sandbox.base import Link, TransferFailed, TransferRefused
from argo_harbor.sandbox.transfer import PipeReader, pack, receive_file, receive_folder


def sent(data: bytes, seconds: float = 10) -> PipeReader:
    """The reading end of a pipe that all of `data` goes through."""
    reader, writer = os.pipe()

    def feed() -> None:
        with os.fdopen(writer, "wb") as out:
            try:
                out.write(data)
            except BrokenPipeError:
                return

    threading.Thread(target=feed).start()
    return PipeReader(reader, seconds)


def archive(*members: tuple[str, bytes, bytes | str], mode: int = 0o644) -> bytes:
    """Name, type, and content or target."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type, info.mode = kind, mode
            data = b"" if isinstance(content, str) else content
            info.linkname = content if isinstance(content, str) else ""
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def receive(data: bytes, target: Path):
    with sent(data) as pipe:
        return receive_folder(pipe, target)


FILE, FOLDER, LINK = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE


def test_files_and_folders_are_written_and_the_rest_is_listed(tmp_path):
    data = archive(
        (".", FOLDER, b""),
        ("./a/b/c", FILE, b"content"),
        ("./a/link", LINK, "/etc/passwd"),
        ("./hard", tarfile.LNKTYPE, "a/b/c"),
        ("./pipe", tarfile.FIFOTYPE, b""),
        ("./null", tarfile.CHRTYPE, b""),
        ("./empty", FOLDER, b""),
    )
    got = receive(data, tmp_path / "new" / "folder")
    assert (got.files, got.bytes) == (1, 7)
    assert got.links == (Link("a/link", "/etc/passwd"), Link("hard", "a/b/c"))
    assert got.skipped == ("pipe", "null")
    found = sorted(p.relative_to(tmp_path).as_posix() for p in (tmp_path / "new" / "folder").rglob("*"))
    assert found == ["new/folder/a", "new/folder/a/b", "new/folder/a/b/c", "new/folder/empty"]


def test_modes_of_downloads_are_tame(tmp_path):
    receive(archive(("script", FILE, b""), mode=0o7777), tmp_path)
    receive(archive(("closed", FILE, b""), ("folder", FOLDER, b""), mode=0), tmp_path)
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
    assert modes == {"script": 0o755, "closed": 0o600, "folder": 0o755}


def test_what_is_there_is_replaced_never_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("untouched")
    target = tmp_path / "target"
    target.mkdir()
    (target / "x").symlink_to(outside)
    (target / "d").symlink_to(tmp_path)
    receive(archive(("x", FILE, b"new"), ("x", FILE, b"newer")), target)
    assert (outside.read_text(), (target / "x").read_text()) == ("untouched", "newer")
    assert not (target / "x").is_symlink()
    for hostile in (("d/y", FILE, b"z"), ("d", FOLDER, b""), ("x/y", FILE, b"z")):
        with pytest.raises(TransferRefused, match="no folder"):
            receive(archive(hostile), target)
    assert not (tmp_path / "y").exists()
    with pytest.raises(TransferRefused, match="a folder and a file"):
        receive(archive(("f", FOLDER, b""), ("f", FILE, b"z")), target)
    with pytest.raises(TransferRefused, match="without a name"):
        receive(archive((".", FILE, b"z")), target)


def test_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(transfer, "MAX_BYTES", 1000)
    monkeypatch.setattr(transfer, "MAX_ENTRIES", 3)
    monkeypatch.setattr(transfer, "MAX_LISTED", 2)
    with pytest.raises(TransferRefused, match="1000 bytes"):
        receive(archive(("a", FILE, b"x" * 600), ("b", FILE, b"x" * 600)), tmp_path / "1")
    with pytest.raises(TransferRefused, match="3 entries"):
        receive(archive(*((str(n), FOLDER, b"") for n in range(4))), tmp_path / "2")
    with pytest.raises(TransferRefused, match="2 links"):
        receive(archive(*((str(n), LINK, "x") for n in range(3))), tmp_path / "3")
    monkeypatch.setattr(transfer, "_TRAILER", 4096)
    with pytest.raises(TransferRefused, match="sends on"):
        receive(archive(("a", FILE, b"")) + bytes(9000), tmp_path / "4")


def test_one_file_under_another_name(tmp_path):
    with sent(archive(("./reward.txt", FILE, b"1"))) as pipe:
        assert receive_file(pipe, name="reward.txt", target=tmp_path / "made" / "r").files == 1
    assert (tmp_path / "made" / "r").read_bytes() == b"1"
    with sent(archive(("./reward.txt", LINK, "/app/forged"))) as pipe:
        got = receive_file(pipe, name="reward.txt", target=tmp_path / "s")
    assert (got.files, got.links) == (0, (Link("s", "/app/forged"),))
    assert not (tmp_path / "s").exists()
    with sent(archive(("./other", FILE, b"1"))) as pipe, pytest.raises(TransferRefused, match="instead of"):
        receive_file(pipe, name="reward.txt", target=tmp_path / "s")
    with sent(archive(("./d", FOLDER, b""))) as pipe, pytest.raises(TransferFailed, match="is a folder"):
        receive_file(pipe, name="d", target=tmp_path / "s")


def test_a_sender_that_stalls_is_given_up(tmp_path):
    reader, writer = os.pipe()
    os.write(writer, bytes(10))
    with PipeReader(reader, 0.3) as pipe, pytest.raises(TransferFailed, match="stopped sending"):
        receive_folder(pipe, tmp_path)
    reader, other = os.pipe()
    with PipeReader(reader, 1000) as pipe:
        pipe.abandon()
        with pytest.raises(TransferFailed):
            pipe.read(1)
    os.close(writer)
    os.close(other)


def test_packing_keeps_modes_and_links_and_forgets_owners(tmp_path):
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True, mode=0o750)
    (source / "run.sh").write_text("x")
    (source / "run.sh").chmod(0o751)
    os.link(source / "run.sh", source / "twin")
    (source / "sub" / "out").symlink_to("../../../etc/passwd")
    os.mkfifo(source / "pipe")
    out = io.BytesIO()
    pack(source, out)
    out.seek(0)
    with tarfile.open(fileobj=out) as tar:
        members = {m.name: m for m in tar}
        assert tar.extractfile("twin").read() == b"x"
    assert sorted(members) == ["run.sh", "sub", "sub/out", "twin"]
    assert {m.uid for m in members.values()} == {m.gid for m in members.values()} == {0}
    assert members["run.sh"].mode == members["twin"].mode == 0o751
    assert members["sub"].mode == 0o750
    assert members["sub/out"].linkname == "../../../etc/passwd"


def test_packing_what_is_not_there_fails(tmp_path):
    with pytest.raises(TransferFailed, match="missing"):
        pack(tmp_path / "missing", io.BytesIO(), name="x")


@pytest.mark.sandbox
def test_a_folder_there_and_back(sandboxes, tmp_path):
    source = tmp_path / "source"
    (source / "a" / "b").mkdir(parents=True)
    (source / "a" / "b" / "x y\n'ü").write_bytes(os.urandom(300_000))
    (source / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (source / "run.sh").chmod(0o755)

    async def use(sandbox):
        await sandbox.upload(source, "/tests/new folder")
        await sandbox.upload(source / "run.sh", "/app/deep/renamed.sh")
        ran = await sandbox.exec(
            "'/tests/new folder/run.sh'; /app/deep/renamed.sh; mkfifo /tests/p; ln -s / /tests/l"
        )
        assert ran.stdout == "ran\nran\n"
        await sandbox.exec("chmod 000 '/tests/new folder/a' /app/deep/renamed.sh")
        got = await sandbox.download_folder("/tests", tmp_path / "down")
        one = await sandbox.download_file("/app/deep/renamed.sh", tmp_path / "one" / "script")
        return got, one

    got, one = sandboxes.run(use)
    assert (got.files, got.links, got.skipped) == (2, (Link("l", "/"),), ("p",))
    assert one.files == 1
    assert (tmp_path / "one" / "script").read_text() == "#!/bin/sh\necho ran\n"
    down = tmp_path / "down" / "new folder"
    assert (down / "a" / "b" / "x y\n'ü").read_bytes() == (source / "a" / "b" / "x y\n'ü").read_bytes()
    assert (down / "run.sh").stat().st_mode & 0o111 == 0o111


@pytest.mark.sandbox
def test_what_is_missing_or_in_the_way_fails(sandboxes, tmp_path):
    async def use(sandbox):
        for missing in ("/no such folder", "/etc/passwd"):
            with pytest.raises(TransferFailed):
                await sandbox.download_folder(missing, tmp_path / "x")
        for missing in ("/no such file", "/app"):
            with pytest.raises(TransferFailed):
                await sandbox.download_file(missing, tmp_path / "y")
        with pytest.raises(TransferFailed):
            await sandbox.upload(Path(__file__), "/etc/passwd/x")

    sandboxes.run(use)
    assert not (tmp_path / "y").exists()


@pytest.mark.sandbox
def test_a_replaced_tar_gains_nothing(sandboxes, tmp_path, monkeypatch):
    """The sandbox packs with its own tar, so it may send anything, or nothing, or never end."""
    hostile = archive(("../escaped", FILE, b"x"), ("/escaped", FILE, b"x"))
    (tmp_path / "hostile.tar").write_bytes(hostile)
    (tmp_path / "good.tar").write_bytes(archive(("./x", FILE, b"x")))

    async def use(sandbox):
        await sandbox.upload(tmp_path / "hostile.tar", "/hostile.tar")
        await sandbox.upload(tmp_path / "good.tar", "/good.tar")
        for script, error in (
            ("cat /hostile.tar", TransferRefused),
            ("yes", TransferRefused),
            ("exit 0", TransferRefused),
            ("cat /good.tar; yes", TransferRefused),
            ("cat /good.tar; exit 3", TransferFailed),
        ):
            await sandbox.exec(
                f"rm -f /usr/bin/tar; printf '#!/bin/sh\\n{script}\\n' > /usr/bin/tar; chmod +x /usr/bin/tar"
            )
            with pytest.raises(error):
                await sandbox.download_folder("/app", tmp_path / "down")
        left = await sandbox.exec("pgrep -c 'yes|tar'")
        assert left.stdout == "0\n"
        monkeypatch.setattr(bubblewrap, "TRANSFER_SECONDS", 0.5)
        await sandbox.exec("printf '#!/bin/sh\ncat /good.tar; sleep 1000\n' > /usr/bin/tar")
        with pytest.raises(TransferFailed, match="stopped sending"):
            await sandbox.download_folder("/app", tmp_path / "down")
        assert (await sandbox.exec("pgrep -c 'sleep|tar'")).stdout == "0\n"

    sandboxes.run(use)
    assert not (tmp_path / "escaped").exists()
    assert sorted(p.name for p in (tmp_path / "down").iterdir()) == ["x"]


@pytest.mark.sandbox
def test_a_cancelled_download_leaves_nothing_running(sandboxes, tmp_path):
    async def use(sandbox):
        await sandbox.exec(
            "rm /usr/bin/tar; printf '#!/bin/sh\\nsleep 1000\\n' > /usr/bin/tar; chmod +x /usr/bin/tar"
        )
        running = asyncio.create_task(sandbox.download_folder("/app", tmp_path / "down"))
        while not (await sandbox.exec("pgrep sleep")).stdout:
            pass
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return (await sandbox.exec("pgrep -c sleep")).stdout

    assert sandboxes.run(use) == "0\n"
