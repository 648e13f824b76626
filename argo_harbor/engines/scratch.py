"""The scratch folder of a run on this machine, and sweeping those whose run has died.

Every process of a run shares a lock on a file in it; the kernel frees the lock with the process. A folder
whose lock nobody holds belongs to a run that was killed, whatever its pids mean by now.
"""

from __future__ import annotations

import fcntl
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from argo_harbor.errors import PlatformError
from argo_harbor.sandbox.scratch import remove_scratch, scratch_folder

LOCK = "alive.lock"
_POLL_SECONDS = 0.1
_MAKING_SECONDS = 60.0
"""A folder without a lock file may belong to a run that is just starting."""


@contextmanager
def run_scratch(run_id: str, preferred: Path) -> Iterator[Path]:
    """The folder of a run, locked while it is in use and removed afterwards.

    Raises: PlatformError `store_write_failed`.
    """
    with writing(preferred):
        folder = scratch_folder(run_id, preferred)
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
        yield folder
    finally:
        try:
            remove_scratch(folder)
        finally:
            os.close(handle)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn what the disk does not take of a run's scratch into PlatformError `store_write_failed`."""
    try:
        yield
    except OSError as error:
        raise PlatformError(
            "store_write_failed",
            f"cannot prepare the run in {folder}: {error.strerror or error}",
            "free some space, or name another folder with --store, or TMPDIR",
        ) from error


def sweep(preferred: Path) -> list[Path]:
    """Remove the folders of runs that have died. Returns what was removed."""
    removed = []
    for folder in _candidates(preferred):
        handle = _try_lock(folder)
        if handle is None:
            continue
        try:
            _end_unborn(folder)
            remove_scratch(folder)
            removed.append(folder)
        finally:
            os.close(handle)
    return removed


def _end_unborn(folder: Path) -> None:
    """End sandboxes that never came to be: when bwrap is killed at its start, its child waits for ever."""
    inside = os.fsencode(folder) + b"/"
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "comm").read_text() == "bwrap\n" and inside in (process / "cmdline").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)


def wait_until_quiet(run_id: str, preferred: Path, seconds: float) -> bool:
    """Wait for the last process of a run to end. False when one still lives after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        folders = [folder for folder in _candidates(preferred) if folder.name.endswith(run_id)]
        if not folders or _is_free(folders[0]):
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)


def _is_free(folder: Path) -> bool:
    handle = _try_lock(folder)
    if handle is None:
        return not folder.exists()
    os.close(handle)
    return True


def _try_lock(folder: Path) -> int | None:
    """The lock of a folder that no process uses, else None."""
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        with suppress(FileNotFoundError):
            if time.time() - folder.stat().st_mtime > _MAKING_SECONDS:
                return os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


def _candidates(preferred: Path) -> list[Path]:
    """Folders where `scratch_folder` puts runs, as far as they are ours."""
    found = [*preferred.glob("run-*"), *Path(tempfile.gettempdir()).glob("argo-harbor-run-*")]
    ours = []
    for folder in found:
        with suppress(FileNotFoundError):
            if folder.lstat().st_uid == os.geteuid() and folder.is_dir() and not folder.is_symlink():
                ours.append(folder)
    return ours
