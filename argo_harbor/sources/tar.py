"""A reader of exactly the tar files that `archive` writes, safe on any bytes.

The standard library's reader takes sizes of extended headers on trust and knows many kinds of entries; an
archive from a store is hostile until its digest is checked, so this one knows three kinds and has bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

BLOCK = 512
MAX_EXTENDED = 1 << 16
"""Bytes of one extended header: room for a path and a link of 4,096 bytes each, with every byte escaped."""

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


def read_entries(read: Read) -> Iterator[Entry]:
    """Every entry in order. Raises BrokenTar, and whatever `read` raises."""
    extended: dict[str, str] = {}
    while True:
        header = _exactly(read, BLOCK)
        if header == bytes(BLOCK):
            return
        _check_sum(header)
        kind = header[156:157]
        size = _number(header[124:136])
        if kind == b"x":
            if size > MAX_EXTENDED:
                raise BrokenTar("has an extended header that is too large")
            extended = _extended(_body(read, size))
            continue
        if kind not in {b"0", b"2"}:
            raise BrokenTar(f"has an entry of kind {kind!r}, not a file or link")
        path = extended.get("path") or _path(header)
        target = extended.get("linkpath") or _text(header[157:257])
        extended = {}
        left = _Body(read, size if kind == b"0" else 0)
        yield Entry(path, kind == b"2", target, _number(header[100:108]) & 0o777, left.size, left.chunks())
        if left.left:
            raise BrokenTar("was read in the wrong order")


class _Body:
    def __init__(self, read: Read, size: int) -> None:
        self._read = read
        self.size = size
        self.left = size + -size % BLOCK

    def chunks(self) -> Iterator[bytes]:
        wanted = self.size
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
            records[key.decode()] = value[:-1].decode()
        except UnicodeDecodeError as error:
            raise BrokenTar("has a name that is not UTF-8") from error
        body = body[size:]
    return records
