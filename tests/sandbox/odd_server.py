"""An HTTP server on loopback that answers as a test says: whole, wrong, cut short, or never."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.body)
        return found


type Handler = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class OddServer:
    """Answers by the first handler whose method and start of path match."""

    port: int = 0
    seen: list[Request] = field(default_factory=list)
    handlers: list[tuple[str, str, Handler]] = field(default_factory=list)

    def on(self, method: str, path: str, answer: bytes | Handler) -> None:
        """Answer with exactly these bytes, or by a function. Later ones win."""

        async def write(request: Request, writer: asyncio.StreamWriter) -> None:
            assert isinstance(answer, bytes)
            writer.write(answer)

        self.handlers.insert(0, (method, path, write if isinstance(answer, bytes) else answer))

    def calls(self, method: str, path: str) -> list[Request]:
        return [each for each in self.seen if each.method == method and each.path.startswith(path)]


def reply(status: int, body: bytes = b"", kind: str = "application/json") -> bytes:
    head = f"HTTP/1.1 {status} Odd\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def document(data: object, status: int = 200) -> bytes:
    return reply(status, json.dumps(data).encode())


def stream(events: Iterable[object], *, prefix: str = "") -> bytes:
    """Events as execd streams them, in one chunk each."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    pieces = [f"{prefix}{json.dumps(event)}\n\n".encode() for event in events]
    return (
        head + b"".join(f"{len(piece):x}\r\n".encode() + piece + b"\r\n" for piece in pieces) + b"0\r\n\r\n"
    )


@asynccontextmanager
async def odd_server() -> AsyncIterator[OddServer]:
    made = OddServer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _read(reader)
            made.seen.append(request)
            for method, path, handler in made.handlers:
                if request.method == method and request.path.startswith(path):
                    await handler(request, writer)
                    break
            else:
                writer.write(reply(404))
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client left, as some tests want it
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    parts = urlsplit(target)
    return Request(method, parts.path, parse_qs(parts.query), headers, body)
