"""A small HTTP client for the two servers of a trial pod, execd and egress, both on loopback.

Of HTTP it needs one request per connection with bounded answers, streams that end when their command does,
and calls that end at once when they are cancelled. A library for more would cost every trial a third of a
second of import.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple
from urllib.parse import urlencode

MAX_HEADERS = 100
MAX_LINE = 1 << 16
"""Bytes of one line of a head."""
MAX_DOCUMENT = 4 << 20
"""Bytes of an answer that is read as a whole."""
HEAD_SECONDS = 60.0
"""For a server to begin its answer; a starved sandbox may take its time."""
IDLE_SECONDS = 120.0
"""Between two pieces of an answer; execd says something every three seconds."""
CHUNK = 1 << 16


class NoAnswer(Exception):
    """The server cannot be reached, went away, stalled or does not speak HTTP."""


class Body(NamedTuple):
    """What a request sends, in pieces whose lengths add up to `length`."""

    pieces: Iterable[bytes]
    length: int
    kind: str
    """Content type."""


class Reply:
    """The head of an answer; the rest is read from it while its connection is open."""

    def __init__(self, status: int, headers: Mapping[str, str], reader: asyncio.StreamReader) -> None:
        self.status = status
        self.headers = headers
        """Names in lower case."""
        self._reader = reader

    async def pieces(self) -> AsyncIterator[bytes]:
        """The content as it comes. Raises: NoAnswer when it is cut short or stalls."""
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            async for piece in self._chunked():
                yield piece
            return
        length = self.headers.get("content-length")
        if length is None:
            while piece := await _within(self._reader.read(CHUNK), IDLE_SECONDS):
                yield piece
            return
        async for piece in self._exactly(_number(length, 10)):
            yield piece

    async def read(self, limit: int = MAX_DOCUMENT) -> bytes:
        """The whole content. Raises: NoAnswer, also for more than `limit` bytes."""
        content = bytearray()
        async for piece in self.pieces():
            content += piece
            if len(content) > limit:
                raise NoAnswer(f"the answer is larger than {limit} bytes")
        return bytes(content)

    async def json(self) -> Any:
        """The content as JSON. Raises: NoAnswer."""
        try:
            return json.loads(await self.read())
        except (ValueError, RecursionError) as error:
            raise NoAnswer("the answer is no JSON") from error

    async def _exactly(self, length: int) -> AsyncIterator[bytes]:
        while length:
            piece = await _within(self._reader.read(min(CHUNK, length)), IDLE_SECONDS)
            if not piece:
                raise NoAnswer("the answer is cut short")
            length -= len(piece)
            yield piece

    async def _chunked(self) -> AsyncIterator[bytes]:
        while True:
            size = _number((await _line(self._reader, IDLE_SECONDS)).partition(";")[0], 16)
            async for piece in self._exactly(size):
                yield piece
            ending = await _line(self._reader, IDLE_SECONDS)
            if size == 0:
                return
            if ending:
                raise NoAnswer("the answer is broken: a chunk has another length than it says")


class HttpClient:
    """Calls one server, with the same headers every time."""

    def __init__(self, host: str, port: int, headers: Mapping[str, str]) -> None:
        self._host = host
        self._port = port
        self._headers = headers

    @asynccontextmanager
    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        body: Body | None = None,
        document: object = None,
    ) -> AsyncIterator[Reply]:
        """Send a request, with a `body` or a JSON `document` if any, and read the head of the answer.

        Raises: NoAnswer.
        """
        if document is not None:
            data = json.dumps(document).encode()
            body = Body([data], len(data), "application/json")
        target = path + (f"?{urlencode(query)}" if query else "")
        try:
            opening = asyncio.open_connection(self._host, self._port, limit=MAX_LINE)
            reader, writer = await _within(opening, HEAD_SECONDS)
        except OSError as error:
            raise NoAnswer(f"{self._host}:{self._port}: {error.strerror or error}") from error
        try:
            await self._send(writer, method, target, body)
            yield await _head(reader)
        except OSError as error:
            raise NoAnswer(f"{self._host}:{self._port}: {error.strerror or error}") from error
        finally:
            writer.close()

    async def _send(self, writer: asyncio.StreamWriter, method: str, target: str, body: Body | None) -> None:
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self._host}:{self._port}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in self._headers.items()]
        if body is not None:
            lines += [f"Content-Type: {body.kind}"]
        lines += [f"Content-Length: {body.length if body else 0}"]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        # A server that refuses answers without reading on: what it says matters more than the broken pipe.
        with suppress(ConnectionError):
            for piece in body.pieces if body else ():
                writer.write(piece)
                await _within(writer.drain(), IDLE_SECONDS)
            await _within(writer.drain(), IDLE_SECONDS)


async def _head(reader: asyncio.StreamReader) -> Reply:
    status_line = await _line(reader, HEAD_SECONDS)
    version, _, rest = status_line.partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
        raise NoAnswer("the answer is no HTTP")
    headers: dict[str, str] = {}
    while line := await _line(reader, HEAD_SECONDS):
        name, colon, value = line.partition(":")
        if not colon or len(headers) >= MAX_HEADERS:
            raise NoAnswer("the head of the answer is broken")
        headers[name.strip().lower()] = value.strip()
    return Reply(int(rest[:3]), headers, reader)


async def _line(reader: asyncio.StreamReader, seconds: float) -> str:
    try:
        line = await _within(reader.readline(), seconds)
    except ValueError as error:
        raise NoAnswer("a line of the answer is too long") from error
    if not line.endswith(b"\n"):
        raise NoAnswer("the answer is cut short")
    return line.decode("latin-1").strip()


async def _within[T](work: Awaitable[T], seconds: float) -> T:
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError as error:
        raise NoAnswer(f"no answer within {seconds:g} s") from error


def _number(text: str, base: int) -> int:
    digits = text.strip()
    if not digits.isalnum() or not digits.isascii() or len(digits) > 16:
        raise NoAnswer("the answer is broken: a length is none")
    try:
        return int(digits, base)
    except ValueError as error:
        raise NoAnswer("the answer is broken: a length is none") from error
