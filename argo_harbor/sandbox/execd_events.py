"""The events of a running command, as execd streams them.

Two framings are in use: a bare JSON object and an empty line, and the same behind `data:` as server-sent
events have it. Objects hold no line breaks, so a line is the unit of both.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Literal, NamedTuple, cast, get_args

from argo_harbor.sandbox.http import NoAnswer

MAX_EVENT = 8 << 20
"""Bytes of one event; execd sends output in smaller pieces."""
_FIELDS = (b"event:", b"id:", b"retry:", b":")
"""What server-sent events say besides their data."""

Kind = Literal["init", "stdout", "stderr", "execution_complete", "error", "ping", "other"]


class Event(NamedTuple):
    kind: Kind
    text: str
    """The command's id (`init`), output, or what `error` says: an exit status or a message."""


async def read_events(pieces: AsyncIterator[bytes]) -> AsyncIterator[Event]:
    """Raises: NoAnswer for what is no stream of events."""
    pending = bytearray()
    async for piece in pieces:
        pending += piece
        *lines, rest = pending.split(b"\n")
        for line in lines:
            event = _event(line.strip())
            if event is not None:
                yield event
        pending = bytearray(rest)
        if len(pending) > MAX_EVENT:
            raise NoAnswer(f"an event is larger than {MAX_EVENT} bytes")
    event = _event(pending.strip())
    if event is not None:
        yield event


def _event(line: bytes | bytearray) -> Event | None:
    if not line or line.startswith(_FIELDS):
        return None
    try:
        data = json.loads(line.removeprefix(b"data:"))
    except (ValueError, RecursionError) as error:
        raise NoAnswer("an event is no JSON") from error
    if not isinstance(data, dict):
        raise NoAnswer("an event is no object")
    kind = data.get("type")
    if kind == "error":
        details = data.get("error")
        return Event("error", _text(details.get("evalue") if isinstance(details, dict) else None))
    known = cast(Kind, kind) if kind in get_args(Kind) else "other"
    return Event(known, _text(data.get("text")))


def _text(value: object) -> str:
    return str(value) if isinstance(value, str | int) else ""
