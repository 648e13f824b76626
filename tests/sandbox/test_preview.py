"""What a sandbox sees of this machine, as root and as an ordinary user."""

from __future__ import annotations

import asyncio
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from argo_harbor.sandbox import preview as preview_module
from argo_harbor.sandbox.bubblewrap import BubblewrapSandbox
from argo_harbor.sandbox.image import Base
from argo_harbor.sandbox.preview import closed_paths, copy_readable, make_skeleton, prepare_preview
from argo_harbor.sandbox.scratch import remove_scratch
from tests.sandbox.ordinary import ORDINARY_GROUP, ORDINARY_ID, as_ordinary_user

pytestmark = pytest.mark.sandbox
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="plants files that belong to others")

ALLOWED_ETC = {
    "alternatives", "bash.bashrc", "debian_version", "group", "hostname", "hosts", "ld.so.cache",
    "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "localtime", "nsswitch.conf", "passwd", "profile", "ssl",
}  # fmt: skip


@pytest.fixture
def planted() -> Iterator[Path]:
    """Files of others in a visible folder, each saying "secret"."""
    folder = Path(tempfile.mkdtemp(dir="/usr/local", prefix="argo-harbor-test-"))
    folder.chmod(0o755)
    for name, owner, group, mode in (
        ("root-only", 0, 0, 0o600),
        ("root-group", 0, 0, 0o640),
        ("user-only", ORDINARY_ID, ORDINARY_ID, 0o600),
        ("group-only", 0, ORDINARY_GROUP, 0o640),
        ("for-all", 0, 0, 0o644),
    ):
        path = folder / name
        path.write_text("secret\n")
        path.chmod(mode)
        os.chown(path, owner, group)
    (folder / "closed").mkdir()
    (folder / "closed" / "inner").write_text("secret\n")
    os.chown(folder / "closed", ORDINARY_ID, ORDINARY_ID)
    (folder / "closed").chmod(0o700)
    yield folder
    remove_scratch(folder)


ATTEMPTS = """
cd {folder}
for f in root-only root-group user-only group-only closed/inner; do
    cat $f; cp $f /tmp/copy && cat /tmp/copy; ln $f hard && cat hard; mv $f moved && cat moved
    chmod 644 $f && cat $f; chown 0 $f && cat $f; tar -cf - $f | tar -xOf -; dd if=$f
done 2>/dev/null | grep -c secret
cat for-all
cat /etc/shadow /etc/gshadow 2>/dev/null
"""


@needs_root
def test_root_does_not_lend_its_rights(sandboxes, planted):
    async def use(sandbox):
        return (await sandbox.exec(ATTEMPTS.format(folder=planted))).stdout

    assert sandboxes.run(use) == "0\nsecret\n"
    assert (planted / "root-only").read_text() == "secret\n"


@needs_root
def test_an_ordinary_user_lends_neither_own_files_nor_groups(everything_loaded, planted):
    def check() -> None:
        scratch = Path(tempfile.mkdtemp())
        try:
            asyncio.run(whole(scratch))
        finally:
            remove_scratch(scratch)
        assert not scratch.exists()

    async def whole(scratch: Path) -> None:
        sandbox = BubblewrapSandbox(scratch / "one", ground=prepare_preview(scratch), base=Base.bare())
        await sandbox.start()
        try:
            seen = await sandbox.exec(ATTEMPTS.format(folder=planted))
            assert seen.stdout == "0\nsecret\n", seen
            names = await sandbox.exec(f"ls {planted}")
            assert names.stdout.split() == ["for-all", "root-group", "root-only"]
            wrote = await sandbox.exec(
                "id -u; echo x > /usr/local/bin/x; rm /usr/bin/awk; mkdir -m 0 /app/none"
            )
            assert (wrote.stdout, wrote.return_code) == ("0\n", 0), wrote
            await sandbox.upload(planted / "for-all", "/tests/for-all")
            received = await sandbox.download_folder("/tests", scratch / "down")
            assert received.files == 1
            late = await sandbox.exec("sleep 1000", timeout_sec=0.1)
            assert late.timed_out
        finally:
            await sandbox.stop()

    as_ordinary_user(check)


@pytest.mark.parametrize(
    "folder", ["/root", "/home", "/opt", "/srv", "/mnt", "/media", "/var/lib", "/var/log"]
)
def test_folders_of_the_hosts_data_are_empty(sandboxes, folder):
    async def use(sandbox):
        return (await sandbox.exec(f"ls -A {folder}")).stdout

    assert sandboxes.run(use) == ""


def test_the_top_of_the_tree_is_our_own(sandboxes):
    async def use(sandbox):
        return [
            (await sandbox.exec(f"ls -A {folder}")).stdout.split()
            for folder in ("/", "/etc", "/etc/ssl", "/run")
        ]

    top, etc, ssl, run = sandboxes.run(use)
    assert set(top) <= {
        *(
            "app",
            "bin",
            "dev",
            "etc",
            "home",
            "lib",
            "lib32",
            "lib64",
            "libx32",
            "logs",
            "media",
            "mnt",
            "opt",
        ),
        *("proc", "root", "run", "sbin", "srv", "sys", "tmp", "usr", "var"),
    }
    assert {"passwd", "group"} <= set(etc) <= ALLOWED_ETC
    assert set(ssl) <= {"certs"}
    assert run == ["lock"]


def test_users_are_made_up(sandboxes):
    async def use(sandbox):
        return (await sandbox.exec("cat /etc/passwd | cut -d: -f1; stat -c %U /usr/bin/env /etc /app")).stdout

    assert sandboxes.run(use).split() == [
        "root",
        "daemon",
        "bin",
        "www-data",
        "nobody",
        "nobody",
        "root",
        "root",
    ]


def test_everything_a_task_writes_to_can_be_written(sandboxes):
    folders = (
        "/ /app /logs /logs/agent /logs/verifier /logs/artifacts /root /home /var /var/lib /opt /srv /run"
        " /tmp /etc /usr /usr/bin /usr/lib /usr/local /usr/local/bin /usr/local/lib /usr/share /mnt /dev/shm"
    )

    async def use(sandbox):
        made = await sandbox.exec(f"for d in {folders}; do echo x > $d/new-file || echo $d; done")
        changed = await sandbox.exec(
            "mkdir /tests /solution /installed-agent && ln -sf python3 /usr/bin/python && rm /usr/bin/awk"
            " && sed -i s/root/toor/ /etc/passwd && echo 127.0.0.1 x >> /etc/hosts"
        )
        return made.stdout, changed.return_code, changed.stderr

    assert sandboxes.run(use) == ("", 0, "")


def test_devices_are_few(sandboxes):
    async def use(sandbox):
        return (await sandbox.exec("ls /dev; ls /sys; head -c 3 /dev/zero | wc -c")).stdout.split()

    seen = set(sandboxes.run(use))
    assert {"null", "zero", "random", "urandom", "shm", "pts", "3"} <= seen
    assert not any(name.startswith(("vd", "sd", "loop", "nvme", "kvm", "mem", "fuse")) for name in seen)


def test_only_what_others_may_read_is_copied(tmp_path):
    source = tmp_path / "source"
    (source / "open").mkdir(parents=True)
    (source / "closed").mkdir(mode=0o700)
    (source / "closed" / "x").touch()
    for name, mode in (("seen", 0o444), ("secret", 0o640)):
        (source / "open" / name).write_text(name)
        (source / "open" / name).chmod(mode)
    (source / "open" / "link").symlink_to("/nowhere")
    os.mkfifo(source / "open" / "pipe", 0o644)
    copy_readable(source, tmp_path / "copy")
    copy_readable(source / "missing", tmp_path / "copy" / "missing")
    found = sorted(path.relative_to(tmp_path / "copy").as_posix() for path in (tmp_path / "copy").rglob("*"))
    assert found == ["open", "open/link", "open/seen"]
    assert os.readlink(tmp_path / "copy" / "open" / "link") == "/nowhere"
    assert stat.S_IMODE((tmp_path / "copy" / "open" / "seen").stat().st_mode) == 0o644


def test_a_skeleton_has_folders_and_hides_closed_things(tmp_path, monkeypatch):
    """With the rules of an ordinary user, whoever runs this."""
    monkeypatch.setattr(preview_module, "sandbox_id", lambda: None)
    tree = tmp_path / "usr"
    (tree / "a" / "b" / "c" / "d" / "e").mkdir(parents=True)
    (tree / "local" / "x" / "y" / "z").mkdir(parents=True)
    (tree / "share" / "doc").mkdir(parents=True)
    (tree / "private").mkdir(mode=0o700)
    (tree / "private" / "inner").touch()
    (tree / "a" / "b" / "c" / "d" / "secret").touch(mode=0o600)
    (tree / "shown").touch(mode=0o644)
    (tree / "link").symlink_to("private")
    assert sorted(map(str, closed_paths(tree))) == ["a/b/c/d/secret", "private"]
    make_skeleton(tree, tmp_path / "layer")
    layer = tmp_path / "layer"
    found = {path.relative_to(layer).as_posix() for path in layer.rglob("*")}
    folders = {"a", "a/b", "a/b/c", "local", "local/x", "local/x/y", "local/x/y/z", "share"}
    assert found == folders | {"a/b/c/d", "a/b/c/d/secret", "private"}
    for hidden in ("private", "a/b/c/d/secret"):
        assert stat.S_ISCHR((layer / hidden).lstat().st_mode)
        assert (layer / hidden).lstat().st_rdev == 0


def test_a_preview_is_prepared_once(scratch, preview):
    assert prepare_preview(scratch) == preview
