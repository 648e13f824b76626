"""Folders of a run on this machine: where they may lie, who owns them, how they are removed.

Sandboxes run as an ordinary user id even when the program runs as root, so that the kernel's own permission
checks keep them from every file that others may not read. The folders they write to belong to that id and
must be reachable for it. Their content is hostile: folders without permissions, nests thousands of levels
deep.
"""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from pathlib import Path

UNPRIVILEGED_ID = 60600
"""User and group id of sandboxes started by root: below 65536, so that it exists inside containers, and in
the range that systemd documents as unused, so that it owns nothing."""
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FOLDERS = 64
"""Levels that are removed in place; moving a folder costs ten times as much as emptying it."""


def sandbox_id() -> int | None:
    """The id that sandboxes must take, or None when they keep the caller's."""
    return UNPRIVILEGED_ID if os.geteuid() == 0 else None


def give_away(path: Path) -> None:
    """Make the owner of `path` the id that sandboxes run as. Links are not followed."""
    owner = sandbox_id()
    if owner is not None:
        os.chown(path, owner, owner, follow_symlinks=False)


def make_owned_folder(path: Path, mode: int = 0o700) -> Path:
    """Make a folder that sandboxes own. Raises FileExistsError."""
    path.mkdir()
    path.chmod(mode)
    give_away(path)
    return path


def scratch_folder(name: str, preferred: Path) -> Path:
    """The scratch folder `name`, made when missing; the same for the same arguments, so a later sweep finds
    it.

    It lies in `preferred`, or in the system's folder for temporary files when sandboxes could not reach the
    former: root's own data usually lies in a folder that is closed to everybody else.

    Raises: PermissionError when somebody else already owns that name.
    """
    preferred.mkdir(parents=True, exist_ok=True)
    parent = preferred if is_reachable(preferred) else Path(tempfile.gettempdir())
    path = parent / (name if parent == preferred else f"argo-harbor-{name}")
    try:
        path.mkdir(mode=0o711)
    except FileExistsError:
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise PermissionError(f"{path} belongs to somebody else") from None
    path.chmod(0o711)
    return path


def is_reachable(path: Path) -> bool:
    """Whether the id of sandboxes may pass through every folder up to `path`."""
    if sandbox_id() is None:
        return True
    resolved = path.resolve()
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (resolved, *resolved.parents))


def remove_scratch(path: Path) -> None:
    """Remove a folder that sandboxes wrote to; nothing happens when it is missing.

    Never follows a link, and copes with any depth and any permissions. Sandboxes that use the folder must
    have ended.

    Raises: OSError when something cannot be removed.
    """
    try:
        root = os.open(path, _FOLDER_FLAGS)
    except FileNotFoundError:
        return
    except PermissionError:
        path.chmod(0o700)
        root = os.open(path, _FOLDER_FLAGS)
    try:
        # Folders that lay too deep, moved up into the root so that depth never matters.
        moved: list[str] = []
        _empty(root, root, moved)
        while moved:
            _remove_folder(moved.pop(), root, root, moved)
    finally:
        os.close(root)
    path.rmdir()


def _empty(folder: int, root: int, moved: list[str], depth: int = 0) -> None:
    for entry in _entries(folder):
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.name, dir_fd=folder)
        elif depth < _OPEN_FOLDERS:
            _remove_folder(entry.name, folder, root, moved, depth + 1)
        else:
            name = f".{secrets.token_hex(16)}"
            _open_up(entry.name, folder)
            os.rename(entry.name, name, src_dir_fd=folder, dst_dir_fd=root)
            moved.append(name)


def _remove_folder(name: str, parent: int, root: int, moved: list[str], depth: int = 0) -> None:
    _open_up(name, parent)
    folder = os.open(name, _FOLDER_FLAGS, dir_fd=parent)
    try:
        _empty(folder, root, moved, depth)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=parent)


def _entries(folder: int) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return list(entries)


def _open_up(name: str, parent: int) -> None:
    """Give ourselves all rights on a folder; overlay work folders and hostile ones have none."""
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        if stat.S_IMODE(os.fstat(handle).st_mode) & 0o700 != 0o700:
            Path(f"/proc/self/fd/{handle}").chmod(0o700)
    finally:
        os.close(handle)
