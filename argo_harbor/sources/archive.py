"""Archives of tasks (`tar-gzip-v1`): exactly the hashed files, the same bytes every time.

A published task travels as such an archive. Its own hash enters no plan; what counts is the content digest,
which unpacking takes again over what it wrote.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
import tarfile
from collections.abc import Mapping
from typing import BinaryIO

from argo_harbor.errors import Finding, Refused
from argo_harbor.model.taskset import Task, TaskFile
from argo_harbor.sources.bounds import Bounds, FileTooMuch, TooMuch
from argo_harbor.sources.member import printable

FORMAT = "tar-gzip-v1"
_EFFORT = 6
"""The highest, 9, takes half as long again and saves half a percent on text."""
_CHUNK = 1 << 20
LEAST_BYTES = 20
"""No archive is smaller: head and end of a gzip file, and a packed tar in between."""


def write_archive(task: Task, out: BinaryIO) -> None:
    """Write the archive of a task that was read from a folder.

    Entries are sorted and have the mode of the file without set-id and sticky bits, owner 0, time 0. A link
    to another hashed file stays a relative link, any other becomes the file it names.

    Raises Refused: `invalid_task_config` when the task is too large, `source_changed` with every file that is
    no longer what was hashed; OSError when `out` takes no more. After an error `out` holds nothing of use.
    """
    if task.root is None:
        raise ValueError(f"the files of {task.name} are not on this machine")
    _check_bounds(task)
    root = os.path.realpath(task.root)
    known = {file.path: file.sha256 for file in task.files}
    changed: list[Finding] = []
    # The name is left empty and the time zero, so that the same files give the same bytes.
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0, compresslevel=_EFFORT) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for file in task.files:
            try:
                if changed:
                    _compare(root, file)
                else:
                    _add(tar, root, file, known)
            except _Changed as error:
                changed.append(_finding(f"cannot be published: {error}", task.name, file.path))
    if changed:
        raise Refused.of(changed)


class _Changed(Exception):
    """A file is not what it was when it was hashed."""


def _check_bounds(task: Task) -> None:
    bounds = Bounds()
    found: dict[str, Finding] = {}
    hint = "bring large data in a prebuilt image, or pack it into one file"
    for file in task.files:
        try:
            bounds.take(file.path, file.size)
        except TooMuch as error:
            place = printable(file.path) if isinstance(error, FileTooMuch) else ""
            found.setdefault(
                f"{place}: {error}", Finding("invalid_task_config", str(error), hint, task.name, place)
            )
    if found:
        raise Refused.of(found.values())


def _add(tar: tarfile.TarFile, root: str, file: TaskFile, known: Mapping[str, str]) -> None:
    path = f"{root}/{file.path}"
    info = tarfile.TarInfo(file.path)
    if os.path.islink(path):
        target = os.path.relpath(os.path.realpath(path), root)
        if target in known and not os.path.islink(f"{root}/{target}"):
            if known[target] != file.sha256:
                raise _Changed("it links to something else than before")
            info.type = tarfile.SYMTYPE
            info.linkname = os.path.relpath(target, os.path.dirname(file.path) or ".")
            info.mode = 0o777
            tar.addfile(info)
            return
    info.size = file.size
    info.mode = file.mode & 0o777
    with _open(path) as handle:
        checked = _Hashing(handle)
        tar.addfile(info, checked)  # type: ignore[arg-type]  # tarfile only calls read
        checked.finish(file)


def _compare(root: str, file: TaskFile) -> None:
    """Look whether a file is what was hashed, when the archive is lost already. Raises _Changed."""
    with _open(f"{root}/{file.path}") as handle:
        checked = _Hashing(handle)
        left = file.size
        while left:
            left -= len(checked.read(min(left, _CHUNK)))
        checked.finish(file)


def _open(path: str) -> BinaryIO:
    try:
        # Non-blocking, so that a pipe that has taken the file's place cannot hold the program.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise _Changed(error.strerror or str(error)) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _Changed("it is no longer a regular file")
    return os.fdopen(descriptor, "rb")


class _Hashing:
    """A file that remembers the SHA-256 of what was read from it.

    Its own errors are told apart from those of the archive that is being written.
    """

    def __init__(self, handle: BinaryIO) -> None:
        self._handle = handle
        self._digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        try:
            data = self._handle.read(size)
        except OSError as error:
            raise _Changed(error.strerror or str(error)) from error
        if len(data) < size:
            raise _Changed("it became shorter after it was read")
        self._digest.update(data)
        return data

    def finish(self, file: TaskFile) -> None:
        """Raises _Changed when what was read is not what was hashed, or not all there is."""
        if self._digest.hexdigest() != file.sha256 or self._handle.read(1):
            raise _Changed("it changed after it was read")


def _finding(message: str, task: str, file: str) -> Finding:
    hint = "repeat the command when nobody works on the task any more"
    return Finding("source_changed", message, hint, task=task, file=printable(file))
