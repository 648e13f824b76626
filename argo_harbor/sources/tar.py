"""A reader of exactly the tar files that `archive` writes, safe on any bytes.

The standard library's reader takes sizes of extended headers on trust and knows many kinds of entries; an
archive from a store is hostile until its digest is checked, so this one knows three kinds and has bounds.
Archives of a Hub come from other writers, which add entries for folders and may begin paths with `./`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from argo_harbor.sources.bounds import MAX_FOLDERS

BLOCK = 512
MAX_EXTENDED = 1 << 16
"""Bytes of one extended header: room for a path and a link of 4,096 bytes each, with every byte escaped."""

RECORD = 10240
"""Writers fill the last record with zeros."""
_TEXTS = frozenset({"path", "linkpath"})
_IGNORED = frozenset({"mtime", "atime", "ctime", "uid", "gid", "uname", "gname"})
"""Times and owners; any other key changes what an entry is, so that two readers could differ about it."""

Read = Callable[[int], bytes]
"""Gives at most that many bytes, fewer only at the end."""


class BrokenTar(ValueError):
    """The bytes are no archive of the kind that is read here."""


class Entry(NamedTuple):
    """One file or link. The body of a file must be taken from `chunks` before the next entry is asked for."""

    path: str
    is_link: bool
    target: str
    mode: int
    size: int
    chunks: Iterator[bytes]


def read_entries(read: Read, *, foreign: bool = False) -> Iterator[Entry]:
    """Every file and link in order; of a `foreign` writer's archive, without the folders.

    Raises BrokenTar, and whatever `read` raises.
    """
    extended: dict[str, str] | None = None
    folders = 0
    while True:
        header = _exactly(read, BLOCK)
        if header == bytes(BLOCK):
            if extended is not None:
                raise BrokenTar("ends after an extended header")
            _check_end(read)
            return
        _check_sum(header)
        kind = header[156:157]
        size = _number(header[124:136])
        if kind == b"x" and extended is None:
            if size > MAX_EXTENDED:
                raise BrokenTar("has an extended header that is too large")
            extended = _extended(_body(read, size))
            continue
        if kind == b"5" and foreign and not size and folders < MAX_FOLDERS:
            # Files bring their folders; what else is in one, or about it, is no content of a task.
            folders += 1
            extended = None
            continue
        if kind not in {b"0", b"2"}:
            raise BrokenTar(f"has an entry of kind {kind!r}, not a file or link")
        if kind == b"2" and size:
            raise BrokenTar("has a link with content")
        texts = extended or {}
        path = texts.get("path") or _path(header)
        path = path.removeprefix("./") if foreign else path
        target = texts.get("linkpath") or _text(header[157:257])
        extended = None
        body = _Body(read, size)
        yield Entry(path, kind == b"2", target, _number(header[100:108]) & 0o777, size, body.chunks())
        if body.left:
            raise BrokenTar("was read in the wrong order")


def _check_end(read: Read) -> None:
    """After the first block of zeros comes a second, then zeros up to a whole record, then nothing."""
    rest = read(RECORD)
    if len(rest) < BLOCK or len(rest) % BLOCK or rest.strip(b"\0") or read(1):
        raise BrokenTar("does not end where its end is marked")


class _Body:
    def __init__(self, read: Read, size: int) -> None:
        self._read = read
        self._size = size
        self.left = size + -size % BLOCK

    def chunks(self) -> Iterator[bytes]:
        wanted = self._size
        while self.left:
            chunk = _exactly(self._read, min(self.left, 1 << 18))
            self.left -= len(chunk)
            if wanted > 0:
                yield chunk[:wanted]
                wanted -= len(chunk)


def _exactly(read: Read, size: int) -> bytes:
    data = read(size)
    if len(data) != size:
        raise BrokenTar("ends too early")
    return data


def _body(read: Read, size: int) -> bytes:
    return _exactly(read, size + -size % BLOCK)[:size]


def _check_sum(header: bytes) -> None:
    expected = sum(header[:148]) + sum(header[156:]) + 8 * ord(" ")
    if _number(header[148:156]) != expected:
        raise BrokenTar("has a damaged header")


def _number(field: bytes) -> int:
    text = field.strip(b" \0")
    if not text:
        return 0
    if not all(48 <= digit <= 55 for digit in text):
        raise BrokenTar("has a number that is not octal")
    return int(text, 8)


def _decimal(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise BrokenTar("has a length that is no number")
    return int(text)


def _text(field: bytes) -> str:
    try:
        return field.partition(b"\0")[0].decode()
    except UnicodeDecodeError as error:
        raise BrokenTar("has a name that is not UTF-8") from error


def _path(header: bytes) -> str:
    prefix, name = _text(header[345:500]), _text(header[:100])
    return f"{prefix}/{name}" if prefix else name


def _extended(body: bytes) -> dict[str, str]:
    """Records `<length> <key>=<value>LF` of a PAX header."""
    records: dict[str, str] = {}
    while body:
        length, space, _ = body.partition(b" ")
        size = _decimal(length.decode(errors="replace")) if space else 0
        record = body[len(length) + 1 : size]
        key, equals, value = record.partition(b"=")
        if not equals or not value.endswith(b"\n") or size > len(body):
            raise BrokenTar("has a damaged extended header")
        try:
            name, text = key.decode(), value[:-1].decode()
        except UnicodeDecodeError as error:
            raise BrokenTar("has a name that is not UTF-8") from error
        if name in records or name not in _TEXTS | _IGNORED:
            raise BrokenTar(f"has an extended header with {name[:40]!r}, which is not read")
        records[name] = text
        body = body[size:]
    return records
