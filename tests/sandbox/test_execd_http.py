"""The HTTP client of a pod's two servers, against servers that do not keep to HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from argo_harbor.sandbox import http
from argo_harbor.sandbox.http import Body, HttpClient, NoAnswer
from tests.sandbox.odd_server import OddServer, Request, odd_server, reply


async def ask(server: OddServer, *, limit: int = http.MAX_DOCUMENT, body: Body | None = None) -> bytes:
    client = HttpClient("127.0.0.1", server.port, {"X-Token": "secret"})
    async with client.call("GET", "/thing", query=[("path", "/a b")], body=body) as answer:
        return await answer.read(limit)


def run[T](work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


async def answered(raw: bytes, **options: Any) -> bytes:
    async with odd_server() as server:
        server.on("GET", "/thing", raw)
        return await ask(server, **options)


def test_what_is_asked_arrives_with_its_header_and_query() -> None:
    async def check() -> Request:
        async with odd_server() as server:
            server.on("GET", "/thing", reply(200, b"fine"))
            assert await ask(server, body=Body([b"ab", b"c"], 3, "text/plain")) == b"fine"
            return server.seen[0]

    request = run(check())
    assert (request.query, request.headers["x-token"], request.body) == ({"path": ["/a b"]}, "secret", b"abc")


@pytest.mark.parametrize(
    ("raw", "content"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\n\r\n", b"abc"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""),
    ],
)
def test_each_way_to_end_an_answer(raw: bytes, content: bytes) -> None:
    assert run(answered(raw)) == content


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "cut short"),
        (b"SSH-2.0-odd\r\n", "no HTTP"),
        (b"HTTP/1.1 abc\r\n\r\n", "no HTTP"),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "head of the answer"),
        (
            b"HTTP/1.1 200 OK\r\n"
            + b"a: b\r\nc: d\r\n" * 1
            + b"".join(b"h%d: x\r\n" % n for n in range(200)),
            "head",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "cut short"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nabc", "a length is none"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1f\r\n\r\nabc", "a length is none"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "a length is none"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", "another length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", "cut short"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * (http.MAX_LINE * 2) + b"\r\n\r\n", "too long"),
    ],
)
def test_broken_answers_are_no_answers(raw: bytes, reason: str) -> None:
    with pytest.raises(NoAnswer, match=reason):
        run(answered(raw))


def test_an_answer_may_only_be_so_large() -> None:
    with pytest.raises(NoAnswer, match="larger than 10 bytes"):
        run(answered(reply(200, b"x" * 11), limit=10))


def test_nobody_listens() -> None:
    async def check() -> bytes:
        async with odd_server() as server:
            pass
        return await ask(server)

    with pytest.raises(NoAnswer, match="failed"):
        run(check())


def test_a_server_that_stalls_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "HEAD_SECONDS", 0.05)

    async def check() -> bytes:
        async def never(request: Request, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(5)

        async with odd_server() as server:
            server.on("GET", "/thing", never)
            return await ask(server)

    with pytest.raises(NoAnswer, match=r"within 0\.05 s"):
        run(check())


def test_documents_that_are_no_json() -> None:
    async def check() -> object:
        async with odd_server() as server:
            server.on("GET", "/thing", reply(200, b"{nope"))
            async with HttpClient("127.0.0.1", server.port, {}).call("GET", "/thing") as answer:
                return await answer.json()

    with pytest.raises(NoAnswer, match="no JSON"):
        run(check())


def test_a_refusal_counts_even_when_the_server_does_not_read_on() -> None:
    async def check() -> int:
        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(reply(401))
            await writer.drain()
            await asyncio.sleep(0.05)
            writer.close()

        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        async with server:
            client = HttpClient("127.0.0.1", server.sockets[0].getsockname()[1], {})
            body = Body([b"x" * 1000] * 10, 10_000, "text/plain")
            async with client.call("POST", "/thing", body=body) as answer:
                return answer.status

    assert run(check()) == 401
