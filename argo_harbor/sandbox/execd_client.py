"""execd's calls as this project uses them: commands, files, and whether it is there.

execd is OpenSandbox's daemon in a sandbox's container. What it answers is hostile: the sandbox's root may
have put anything in its place.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

from argo_harbor.sandbox.execd_events import Event, read_events
from argo_harbor.sandbox.http import CHUNK, Body, HttpClient, NoAnswer, Reply

TOKEN_HEADER = "X-EXECD-ACCESS-TOKEN"
MAX_LISTED = 200_000
_SAID = 500
"""Characters of what a server says in an error."""


class ExecdRefused(Exception):
    """execd answered, and said no."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{message} ({status})")
        self.status = status
        self.message = message


class TooLarge(Exception):
    """A file is larger than what may be downloaded."""


class FileInfo(NamedTuple):
    path: str
    kind: str
    """`file`, `directory` or another word for anything else; empty where execd does not say."""
    size: int
    mode: int


class ExecdClient:
    """Calls the execd at one address. Every method raises NoAnswer, and ExecdRefused unless it says more."""

    def __init__(self, host: str, port: int, token: str) -> None:
        self._http = HttpClient(host, port, {TOKEN_HEADER: token} if token else {})

    async def ping(self) -> None:
        await self._done("GET", "/ping")

    async def run(self, request: Mapping[str, object]) -> AsyncGenerator[Event]:
        """Run a command and follow it; the last event is `execution_complete` or `error`."""
        async with self._http.call("POST", "/command", document=request) as reply:
            await _must_be_fine(reply)
            # Errors before the command starts may come as a document even with a good status.
            if "json" in reply.headers.get("content-type", ""):
                raise ExecdRefused(reply.status, _message(await reply.read()))
            async for event in read_events(reply.pieces()):
                yield event

    async def interrupt(self, command: str) -> None:
        """Have a command's process group end: politely, after three seconds by force."""
        await self._done("DELETE", "/command", query=[("id", command)])

    async def is_running(self, command: str) -> bool:
        try:
            status = await self._document("GET", f"/command/status/{command}")
        except ExecdRefused as error:
            if error.status == 404:
                return False
            raise
        return bool(status.get("running")) if isinstance(status, dict) else True

    async def upload(self, path: str, content: BinaryIO, size: int, mode: int) -> None:
        """Write `size` bytes to a file, whose folders are made when missing."""
        boundary = secrets.token_hex(16)
        # execd reads the mode's decimal digits as an octal number.
        metadata = json.dumps({"path": path, "mode": int(f"{mode:o}")})
        head = (
            f"--{boundary}\r\n"
            'Content-Disposition: form-data; name="metadata"; filename="metadata"\r\n'
            f"Content-Type: application/json\r\n\r\n{metadata}\r\n"
            f"--{boundary}\r\n"
            'Content-Disposition: form-data; name="file"; filename="file"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        ).encode()
        tail = f"\r\n--{boundary}--\r\n".encode()
        body = Body(
            _multipart(head, content, size, tail),
            len(head) + size + len(tail),
            f"multipart/form-data; boundary={boundary}",
        )
        await self._done("POST", "/files/upload", body=body)

    async def download(self, path: str, target: BinaryIO, limit: int) -> int:
        """Append a file's content to an open file. Returns its size. Raises: TooLarge."""
        written = 0
        async with self._http.call("GET", "/files/download", query=[("path", path)]) as reply:
            await _must_be_fine(reply)
            async for piece in reply.pieces():
                written += len(piece)
                if written > limit:
                    raise TooLarge(f"{path} is larger than {limit} bytes")
                target.write(piece)
        return written

    async def read(self, path: str, limit: int) -> bytes:
        """A small file. Raises: NoAnswer when it is larger than `limit` bytes."""
        async with self._http.call("GET", "/files/download", query=[("path", path)]) as reply:
            await _must_be_fine(reply)
            return await reply.read(limit)

    async def info(self, path: str) -> FileInfo | None:
        """None when there is nothing."""
        try:
            found = await self._document("GET", "/files/info", query=[("path", path)])
        except ExecdRefused as error:
            if error.status == 404:
                return None
            raise
        entry = found.get(path) if isinstance(found, dict) else None
        return _file_info(entry, path)

    async def search(self, folder: str) -> list[FileInfo]:
        """Everything below a folder, as execd lists it."""
        found = await self._document("GET", "/files/search", query=[("path", folder), ("pattern", "**")])
        if not isinstance(found, list) or len(found) > MAX_LISTED:
            raise NoAnswer("the list of files is none, or too long")
        return [_file_info(entry, "") for entry in found]

    async def make_folders(self, modes: Mapping[str, int]) -> None:
        """Make folders that are missing, with these modes."""
        wanted = {path: {"mode": int(f"{mode:o}")} for path, mode in modes.items()}
        await self._done("POST", "/directories", document=wanted)

    async def remove(self, path: str) -> None:
        await self._done("DELETE", "/files", query=[("path", path)])

    async def _done(
        self,
        method: str,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        body: Body | None = None,
        document: object = None,
    ) -> None:
        async with self._http.call(method, path, query=query, body=body, document=document) as reply:
            await _must_be_fine(reply)

    async def _document(self, method: str, path: str, *, query: Sequence[tuple[str, str]] = ()) -> Any:
        async with self._http.call(method, path, query=query) as reply:
            await _must_be_fine(reply)
            return await reply.json()


async def _must_be_fine(reply: Reply) -> None:
    if not 200 <= reply.status < 300:
        raise ExecdRefused(reply.status, _message(await reply.read()))


def _message(data: bytes) -> str:
    """What an error answer says, in whichever shape."""
    text = data.decode(errors="replace")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict):
        text = str(document.get("message") or document.get("error") or text)
    return text.strip()[:_SAID] or "no reason given"


def _file_info(entry: object, path: str) -> FileInfo:
    if not isinstance(entry, dict):
        raise NoAnswer("what execd says of a file is no object")
    size, mode = entry.get("size"), entry.get("mode")
    return FileInfo(
        path=str(entry.get("path") or path),
        kind=str(entry.get("type") or ""),
        size=size if isinstance(size, int) else -1,
        mode=int(str(mode), 8) if isinstance(mode, int) and set(str(mode)) <= set("01234567") else 0o644,
    )


def _multipart(head: bytes, content: BinaryIO, size: int, tail: bytes) -> Iterator[bytes]:
    yield head
    left = size
    while left:
        piece = content.read(min(CHUNK, left))
        # A file that shrinks while it is read would leave the request without an end.
        piece = piece or bytes(min(CHUNK, left))
        left -= len(piece)
        yield piece
    yield tail
