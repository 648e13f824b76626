"""Both framings of a command's events, as fixtures that any client here has to understand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from opensandbox.adapters.sse import iter_sse_events

from argo_harbor.sandbox.execd_events import Event, read_events

STREAMS = sorted((Path(__file__).parent / "streams").glob("*.txt"))
TOLD = [
    Event("init", "0123456789abcdef0123456789abcdef"),
    Event("stdout", "one\n"),
    Event("stderr", 'data: two {"a": 1}\n'),
    Event("ping", "pong"),
    Event("stdout", "drei — 三\n"),
    Event("error", "3"),
]


@pytest.mark.parametrize("stream", STREAMS, ids=lambda path: path.stem)
def test_published_client_reads_it(stream: Path) -> None:
    response = httpx.Response(
        200,
        headers={"content-type": "text/event-stream"},
        content=stream.read_bytes(),
        request=httpx.Request("POST", "http://sandbox/command"),
    )
    events = [json.loads(event.data) for event in iter_sse_events(response)]
    assert [event["type"] for event in events] == [event.kind for event in TOLD]
    assert [event["text"] for event in events if "text" in event] == [event.text for event in TOLD[:-1]]


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
@pytest.mark.parametrize("stream", STREAMS, ids=lambda path: path.stem)
def test_own_client_reads_it(stream: Path, size: int) -> None:
    """However the network cuts it."""
    content = stream.read_bytes()

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(content), size):
            yield content[start : start + size]

    async def read() -> list[Event]:
        return [event async for event in read_events(pieces())]

    assert asyncio.run(read()) == TOLD
