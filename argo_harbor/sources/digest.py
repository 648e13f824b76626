"""Content and environment digests, equal to Harbor's, in one pass over the files.

Harbor's packager takes SHA-256 over the lines `<path> NUL <SHA-256 of the bytes> LF` of the content files;
its image tags come from a SHA-256 over length-prefixed paths and contents of one folder. Every published
task and image depends on both, so the tests compare them with Harbor's own on generated trees.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from argo_harbor.model.taskset import TaskFile
from argo_harbor.sources.tree import Tree, image_files, read_tree

_SMALL = 1 << 16
"""Bytes up to which a file's content is kept for the second digest instead of being read again."""
_CHUNK = 1 << 20


class FileReading(NamedTuple):
    """One file."""

    data: bytes | None
    """The content when it is small."""
    sha256: str
    mode: int
    """Permission bits."""
    size: int
    """Bytes."""


class Content(NamedTuple):
    """The hashed files of a task."""

    digest: str
    """64 hex."""
    files: tuple[TaskFile, ...]
    """Sorted by path."""
    small: Mapping[str, bytes]
    """Contents of small files that were asked for, by path."""


def content_digest(root: str | os.PathLike[str]) -> str:
    """Harbor's content hash of the task folder, 64 hex. Raises OSError, and ValueError for a broken tree."""
    tree = read_tree(os.path.realpath(root))
    if tree.findings:
        raise ValueError(str(tree.findings[0]))
    return read_content(tree.root, tree.files).digest


def read_content(
    root: str,
    paths: Iterable[str],
    *,
    keep: tuple[str, ...] = (),
    known: Mapping[str, FileReading] | None = None,
) -> Content:
    """Hash the files at sorted `paths`, except those that are `known` already.

    The bytes of small files below the `keep` prefixes are handed back. Raises OSError.
    """
    files: list[TaskFile] = []
    small: dict[str, bytes] = {}
    for path in paths:
        reading = known[path] if known and path in known else read_file(f"{root}/{path}")
        files.append(TaskFile(path, reading.size, reading.mode, reading.sha256))
        if reading.data is not None and path.startswith(keep):
            small[path] = reading.data
    return Content(digest_of((file.path, file.sha256) for file in files), tuple(files), small)


def digest_of(files: Iterable[tuple[str, str]]) -> str:
    """Content digest of (path, SHA-256) pairs sorted by path."""
    return hashlib.sha256("".join([f"{path}\0{sha}\n" for path, sha in files]).encode()).hexdigest()


def environment_digest(
    tree: Tree, folder: str, *, docker_image: str = "", known: Mapping[str, bytes] | None = None
) -> str:
    """Harbor's hash of a folder that an image is built from, 64 hex instead of Harbor's first 32.

    `folder` is relative to the task. Without a file in it the image's name is hashed, or else the folder's.
    `known` holds contents, by path in the task, that need not be read again. Raises OSError.
    """
    paths = image_files(tree, folder)
    if not paths:
        return hashlib.sha256((docker_image or os.path.basename(folder)).encode()).hexdigest()
    contents = known or {}
    sizes = [_size(tree, f"{folder}/{path}", contents) for path in paths]
    digest = hashlib.sha256()
    width = 4
    if max(sizes) >= 1 << 32:
        digest.update(b"\x01")
        width = 8
    for path, size in zip(paths, sizes, strict=True):
        name = path.encode(errors="surrogateescape")
        digest.update(len(name).to_bytes(4, "big") + name + size.to_bytes(width, "big"))
        data = contents.get(f"{folder}/{path}")
        if data is not None:
            digest.update(data)
        else:
            _feed(f"{tree.root}/{folder}/{path}", digest)
    return digest.hexdigest()


def _size(tree: Tree, path: str, contents: Mapping[str, bytes]) -> int:
    data = contents.get(path)
    return len(data) if data is not None else os.stat(f"{tree.root}/{path}").st_size


def _feed(path: str, digest: hashlib._Hash) -> None:
    with open(path, "rb", buffering=0) as handle:
        while chunk := handle.read(_CHUNK):
            digest.update(chunk)


def read_file(path: str) -> FileReading:
    """Read and hash one regular file. Raises OSError."""
    # Non-blocking, so that a pipe put in place after the walk cannot hold the program.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "is no longer a regular file", path)
        mode = stat.S_IMODE(status.st_mode)
        if status.st_size < _SMALL:
            data = os.read(descriptor, _SMALL)
            if len(data) < _SMALL:
                return FileReading(data, hashlib.sha256(data).hexdigest(), mode, len(data))
            os.lseek(descriptor, 0, os.SEEK_SET)
        digest = hashlib.sha256()
        size = 0
        while chunk := os.read(descriptor, _CHUNK):
            digest.update(chunk)
            size += len(chunk)
        return FileReading(None, digest.hexdigest(), mode, size)
    finally:
        os.close(descriptor)
