"""Output of one command: its tail is kept, the rest is counted and dropped, the pipe is always read.

A command may leave a server running that holds its pipes. Reading goes on for as long as anybody may write,
so that the server neither blocks on a full pipe nor dies of a closed one.
"""

from __future__ import annotations

import asyncio
import os


class Tail(asyncio.Protocol):
    """The last `limit` bytes of what arrives; at most twice that in memory."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._total = 0
        self._keeping = True
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if not self._keeping:
            return
        self._total += len(data)
        self._kept += data
        if len(self._kept) > 2 * self._limit:
            del self._kept[: -self._limit]

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)

    def finish(self) -> str:
        """What was kept, as text; from now on everything is dropped."""
        self._keeping = False
        kept = bytes(self._kept[-self._limit :])
        self._kept.clear()
        dropped = self._total - len(kept)
        text = kept.decode("utf-8", errors="replace")
        return f"[{dropped} bytes of output dropped]\n{text}" if dropped else text

    def close(self) -> None:
        """Stop reading. Only right when nobody can write any more."""
        if self._transport is not None:
            self._transport.close()


async def open_tail(limit: int) -> tuple[Tail, int]:
    """A tail and the file descriptor of the pipe to it, which the caller closes after giving it to a
    child."""
    reader, writer = os.pipe()
    tail = Tail(limit)
    await asyncio.get_running_loop().connect_read_pipe(lambda: tail, os.fdopen(reader, "rb", buffering=0))
    return tail, writer
