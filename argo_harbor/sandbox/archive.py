"""A strict reader of tar streams that a sandbox sends.

The program that packs them runs inside, so every byte is hostile. The standard library's reader is built to
make the best of any archive, and holds extended headers of any size in memory; this one knows the few
shapes that GNU tar writes, bounds each of them, and refuses everything else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Literal, NamedTuple, Protocol

from argo_harbor.sandbox.base import TransferRefused

BLOCK = 512
MAX_PATH = 4096
MAX_NAME = 255
MAX_DEPTH = 128
MAX_EXTENSION = 64 << 10
"""Bytes of one long name or extended header."""

type Kind = Literal["file", "folder", "link", "special"]
_KINDS: dict[bytes, Kind] = {
    b"0": "file", b"\0": "file", b"7": "file", b"1": "link", b"2": "link",
    b"3": "special", b"4": "special", b"5": "folder", b"6": "special",
}  # fmt: skip


class ArchiveCutShort(TransferRefused):
    """The stream ended before its archive did."""


class Source(Protocol):
    def read(self, size: int) -> bytes:
        """Exactly `size` bytes, fewer only at the end."""


class Member(NamedTuple):
    parts: tuple[str, ...]
    """Path below the packed folder; empty for that folder itself. No part is `..`, `.`, empty or too long."""
    kind: Kind
    size: int
    """Bytes of content, 0 for all but files."""
    mode: int
    target: str
    """Where a link points, as the archive says."""
    hard: bool = False
    """For links: a second name of a file in the same archive."""


class ArchiveReader:
    """Members of one archive in order; the content of a file is read before the next member is asked for."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._unread = 0
        self._padding = 0

    def members(self) -> Iterator[Member]:
        """Raises: TransferRefused when the stream is no whole archive of the accepted shapes."""
        names: dict[str, str] = {}
        while True:
            self._skip_content()
            header = self._source.read(BLOCK)
            if header == bytes(BLOCK):
                return
            if len(header) < BLOCK:
                raise ArchiveCutShort("the archive is cut short")
            _check_sum(header)
            kind, size = header[156:157], _number(header[124:136])
            if kind in (b"L", b"K", b"x", b"g"):
                names |= _extension(kind, self._small(size))
                continue
            known = _KINDS.get(kind)
            if known is None:
                raise TransferRefused(f"the archive holds an entry of the unknown type {kind!r}")
            size = int(names.get("size", size)) if known == "file" else 0
            self._unread, self._padding = size, -size % BLOCK
            yield Member(
                parts=_parts(names.get("path", _path_of(header))),
                kind=known,
                size=size,
                mode=_number(header[100:108]) & 0o777,
                target=names.get("linkpath", _text(header[157:257])),
                hard=kind == b"1",
            )
            names = {}

    def content(self, chunk: int = 1 << 16) -> Iterator[bytes]:
        """The content of the member that `members` gave last, in pieces."""
        while self._unread:
            piece = self._source.read(min(chunk, self._unread))
            if not piece:
                raise ArchiveCutShort("the archive is cut short")
            self._unread -= len(piece)
            yield piece

    def _skip_content(self) -> None:
        for _ in self.content():
            pass
        if len(self._source.read(self._padding)) < self._padding:
            raise ArchiveCutShort("the archive is cut short")
        self._padding = 0

    def _small(self, size: int) -> bytes:
        if size > MAX_EXTENSION:
            raise TransferRefused(f"the archive holds a name of {size} bytes")
        data = self._source.read(size + -size % BLOCK)
        if len(data) < size:
            raise ArchiveCutShort("the archive is cut short")
        return data[:size]


def is_header(block: bytes) -> bool:
    """Whether a block is a header of a tar archive."""
    try:
        return len(block) == BLOCK and any(block) and _sums_up(block)
    except TransferRefused:
        return False


def _sums_up(header: bytes) -> bool:
    return sum(header[:148]) + sum(header[156:]) + 8 * ord(" ") == _number(header[148:156])


def _check_sum(header: bytes) -> None:
    if not _sums_up(header):
        raise TransferRefused("the archive is broken: a header's checksum is wrong")


def _number(field: bytes) -> int:
    """Octal digits, or a big-endian number after a byte 0x80 (GNU)."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b" \0")
    if not digits:
        return 0
    if not all(digit in b"01234567" for digit in digits):
        raise TransferRefused("the archive is broken: a number is none")
    return int(digits, 8)


def _text(field: bytes) -> str:
    return os.fsdecode(field.split(b"\0", 1)[0])


def _path_of(header: bytes) -> str:
    name, prefix = _text(header[:100]), _text(header[345:500])
    # GNU headers use the room of the prefix for times.
    is_posix = header[257:263] == b"ustar\0"
    return f"{prefix}/{name}" if is_posix and prefix else name


def _extension(kind: bytes, data: bytes) -> dict[str, str]:
    if kind == b"g":
        return {}
    if kind == b"x":
        return _extended_header(data)
    return {"path" if kind == b"L" else "linkpath": _text(data)}


def _extended_header(data: bytes) -> dict[str, str]:
    """Records `<length> <key>=<value>\\n` of POSIX; only what describes names and sizes is kept."""
    found: dict[str, str] = {}
    while data.strip(b"\0"):
        digits, space, _ = data.partition(b" ")
        if not space or not digits.isdigit() or len(digits) > len(str(MAX_EXTENSION)):
            raise TransferRefused("the archive is broken: an extended header is none")
        record, data = data[: int(digits)], data[int(digits) :]
        key, equals, value = record[len(digits) + 1 :].partition(b"=")
        if int(digits) <= len(digits) or not equals or not value.endswith(b"\n"):
            raise TransferRefused("the archive is broken: an extended header is none")
        if key in (b"path", b"linkpath"):
            found[key.decode()] = os.fsdecode(value[:-1])
        elif key == b"size":
            if not value[:-1].isdigit() or len(value) > 19:
                raise TransferRefused("the archive is broken: a size is none")
            found["size"] = value[:-1].decode()
    return found


def _parts(path: str) -> tuple[str, ...]:
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    encoded = os.fsencode(path)
    if path.startswith("/") or ".." in parts or b"\0" in encoded:
        raise TransferRefused(f"the archive holds a path that leaves its folder: {path[:200]!r}")
    if len(encoded) > MAX_PATH or len(parts) > MAX_DEPTH:
        raise TransferRefused(f"the archive holds a path that is too long: {path[:80]!r}…")
    if any(len(os.fsencode(part)) > MAX_NAME for part in parts):
        raise TransferRefused(f"the archive holds a name that is too long: {path[:80]!r}…")
    return parts
