"""Our programs for sandboxes of images: complete with their libraries, or a clear refusal."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from argo_harbor.errors import PlatformError
from argo_harbor.sandbox import toolbox
from argo_harbor.sandbox.toolbox import INSIDE, fill_toolbox, prepare_image_ground


def test_a_program_runs_by_its_own_loader_and_libraries(tmp_path):
    static = fill_toolbox(tmp_path / "box")
    assert {"sh", "tar", "mkdir", "setsid", "setpriv"} <= {path.name for path in (tmp_path / "box").iterdir()}
    for program in {"tar", "setsid"} - set(static):
        command = [
            tmp_path / "box" / "loader",
            "--library-path",
            tmp_path / "box",
            tmp_path / "box" / program,
        ]
        said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True, env={})
        assert program in said.stdout
    assert b"/etc/ld.so.preload" not in b"".join(path.read_bytes() for path in (tmp_path / "box").iterdir())


def test_the_ground_is_prepared_once(tmp_path):
    ground = prepare_image_ground(tmp_path)
    (tmp_path / "images" / "toolbox" / "tar").unlink()
    assert prepare_image_ground(tmp_path) == ground
    assert not (tmp_path / "images" / "toolbox" / "tar").exists()
    assert ground.shown == ((tmp_path / "images" / "toolbox", INSIDE),)


def test_a_static_program_needs_no_loader(tmp_path, monkeypatch):
    monkeypatch.setattr(toolbox, "_libraries", lambda program: {})
    ground = prepare_image_ground(tmp_path)
    assert ground.inside("tar") == [f"{INSIDE}/tar"]
    assert not (tmp_path / "images" / "toolbox" / "loader").exists()


def test_a_program_that_is_missing_is_named(tmp_path, monkeypatch):
    real = toolbox.shutil.which
    monkeypatch.setattr(
        toolbox.shutil, "which", lambda name, path: None if name == "tar" else real(name, path=path)
    )
    with pytest.raises(PlatformError, match="need the program tar") as failed:
        fill_toolbox(tmp_path / "box")
    assert failed.value.code == "sandbox_unavailable"


@pytest.mark.parametrize("error", [FileNotFoundError("ldd"), subprocess.TimeoutExpired("ldd", 1)])
def test_libraries_that_cannot_be_found_out_are_a_refusal(tmp_path, monkeypatch, error):
    def fails(*args: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(toolbox.subprocess, "run", fails)
    with pytest.raises(PlatformError, match="the libraries of") as failed:
        fill_toolbox(tmp_path / "box")
    assert failed.value.code == "sandbox_unavailable"


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        ("\tstatically linked\n", {}),
        (
            "\tlinux-vdso.so.1 (0x00007f46)\n\tlibc.so.6 => /lib/libc.so.6 (0x00007f46)\n"
            "\t/lib64/ld-linux-x86-64.so.2 (0x00007f46)\n",
            {"libc.so.6": Path("/lib/libc.so.6"), "loader": Path("/lib64/ld-linux-x86-64.so.2")},
        ),
        (
            "\t/lib/ld-musl-x86_64.so.1 (0x7f46)\n"
            "\tlibc.musl-x86_64.so.1 => /lib/ld-musl-x86_64.so.1 (0x7f46)\n",
            {
                "loader": Path("/lib/ld-musl-x86_64.so.1"),
                "libc.musl-x86_64.so.1": Path("/lib/ld-musl-x86_64.so.1"),
            },
        ),
    ],
)
def test_libraries_as_glibc_and_musl_list_them(monkeypatch, listed, found):
    answer = subprocess.CompletedProcess([], 0, stdout=listed, stderr="")
    monkeypatch.setattr(toolbox.subprocess, "run", lambda *args, **options: answer)
    assert toolbox._libraries("/bin/x") == found
