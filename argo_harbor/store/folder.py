"""Folders that people name as output: written beside their place, then swapped in; whole, or not there.

Called by `compile` and by downloads.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from argo_harbor.errors import PlatformError

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_NAME_PART = 40
"""Characters of the target's name in that of the fresh folder, which must not be longer than names may be."""
_MOUNT = "the root of a mount cannot be replaced: name a folder below it with -o"
_HINTS = {errno.EBUSY: _MOUNT, errno.EXDEV: _MOUNT}


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A fresh folder to fill; it takes the target's place when the block ends, else it is removed.

    Of a link it is the folder behind it that is replaced, and the link stays.

    Raises PlatformError `store_write_failed` when it cannot be written; the target is then as it was.
    """
    fresh: Path | None = None
    try:
        place = _place(target)
        fresh = Path(tempfile.mkdtemp(prefix=f".{place.name[:_NAME_PART]}-", dir=place.parent))
        yield fresh
        fresh.chmod(0o755)
        _swap(fresh, place)
    except OSError as error:
        raise _cannot_write(target, error) from error
    finally:
        if fresh is not None:
            shutil.rmtree(fresh, ignore_errors=True)


@contextmanager
def resuming(target: Path) -> Iterator[Path]:
    """Like `replacing`, but a folder that was not filled stays beside the target, and the next call gets it
    with what is in it.

    Raises PlatformError `store_write_failed` as `replacing`.
    """
    try:
        place = _place(target)
        partial = place.with_name(f".{place.name[:_NAME_PART]}.partial")
        partial.mkdir(exist_ok=True)
        yield partial
        _swap(partial, place)
        # What was there before the swap.
        shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        raise _cannot_write(target, error) from error


def _place(target: Path) -> Path:
    """The folder itself, below one that is there."""
    # Resolved, because neither a link nor the current folder, by its name ".", can be renamed.
    place = Path(os.path.realpath(target))
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _cannot_write(target: Path, error: OSError) -> PlatformError:
    return PlatformError(
        "store_write_failed",
        f"cannot write {target}: {error.strerror or error}",
        _HINTS.get(error.errno or 0, "free some space or name another folder with -o"),
    )


def _swap(fresh: Path, target: Path) -> None:
    """Put the fresh folder in the target's place; the old one ends where the fresh one was, to be removed."""
    if not target.exists():
        fresh.rename(target)
        return
    try:
        _exchange(fresh, target)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EINVAL):
            raise
        aside = fresh.with_name(fresh.name + "-old")
        target.rename(aside)
        fresh.rename(target)
        aside.rename(fresh)


def _exchange(first: Path, second: Path) -> None:
    """Swap two folders in one step, so that no reader ever finds neither: renameat2(2).

    Raises OSError: ENOSYS or EINVAL where the system cannot do it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    done = libc.renameat2(
        _AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), ctypes.c_uint(_RENAME_EXCHANGE)
    )
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(second))
