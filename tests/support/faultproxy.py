"""An HTTP proxy that stands before a real server and damages chosen requests or answers.

Everything that no fault was asked for is passed on unchanged. A fault is used up after its number of times.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Kind = str
"""What goes wrong:

`status:503` an answer of that status; `drop` no answer; `lose-answer` the server's answer is thrown away;
`slow` the answer comes when the proxy ends; `cut-request` half of the body reaches the server; `flip-request`
and `flip-answer` a byte of the body is another; `cut-answer` half of the body, then a reset; `end-answer` the
same with an orderly end; `short-answer` half of the body as if it were all; `etag` another ETag.
"""


@dataclass
class Fault:
    kind: Kind
    when: Callable[[bytes], bool]
    """Told by the request's head."""
    times: int = 1
    headers: bytes = b""
    """Of a `status` answer, each ended by CRLF."""
    hit: int = 0


@dataclass
class FaultProxy:
    host: str
    port: int
    target: tuple[str, int]
    faults: list[Fault] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)
    """First lines and headers, as they came."""
    release: threading.Event = field(default_factory=threading.Event)
    """Ends the waiting of `slow`."""

    @property
    def endpoint(self) -> str:
        return f"http://{self.host}:{self.port}"

    def add(
        self, kind: Kind, method: str, *, times: int = 1, having: str = "", headers: bytes = b""
    ) -> Fault:
        """Damage the next requests of a method; `having` must stand in the head."""

        def when(head: bytes) -> bool:
            return head.startswith(method.encode() + b" ") and having.lower().encode() in head.lower()

        fault = Fault(kind, when, times, headers)
        self.faults.append(fault)
        return fault

    def seen(self, method: str, having: str = "") -> int:
        """How many such requests came."""
        return sum(
            head.startswith(method.encode() + b" ") and having.lower().encode() in head.lower()
            for head in self.requests
        )

    def serve(self, client: socket.socket) -> None:
        with client:
            while head_and_rest := _head(client):
                if not self._exchange(client, *head_and_rest):
                    return

    def _exchange(self, client: socket.socket, head: bytes, rest: bytes) -> bool:
        """Pass one request on. Returns whether the connection lives on."""
        body = _body(client, head, rest)
        self.requests.append(head)
        fault = next((one for one in self.faults if one.hit < one.times and one.when(head)), None)
        kind = ""
        if fault is not None:
            fault.hit += 1
            kind = fault.kind
        if kind == "drop":
            _reset(client)
            return False
        if fault is not None and kind.startswith("status:"):
            status = kind.removeprefix("status:").encode()
            client.sendall(
                b"HTTP/1.1 " + status + b" Wrong\r\n" + fault.headers + b"Content-Length: 0\r\n\r\n"
            )
            return True
        if kind == "flip-request":
            body = _flipped(body)
        with socket.create_connection(self.target) as server:
            if kind == "cut-request":
                server.sendall(head + body[: len(body) // 2])
                server.shutdown(socket.SHUT_WR)
                _reset(client)
                return False
            server.sendall(head + body)
            answer, rest = _head(server) or (b"", b"")
            content = _body(server, answer, rest) if not head.startswith(b"HEAD ") else b""
        return self._answer(client, kind, answer, content)

    def _answer(self, client: socket.socket, kind: Kind, answer: bytes, content: bytes) -> bool:
        if kind == "lose-answer":
            _reset(client)
            return False
        if kind == "slow":
            self.release.wait(30)
        if kind == "flip-answer":
            content = _flipped(content)
        if kind == "etag":
            answer = _changed(answer, b"etag", b'"00000000000000000000000000000000"')
        if kind == "short-answer":
            content = content[: len(content) // 2]
            answer = _changed(answer, b"content-length", str(len(content)).encode())
        if kind == "cut-answer":
            client.sendall(answer + content[: len(content) // 2])
            _reset(client)
            return False
        if kind == "end-answer":
            client.sendall(answer + content[: len(content) // 2])
            return False
        client.sendall(answer + content)
        return b"connection: close" not in answer.lower()


@contextmanager
def proxy(target: tuple[str, int]) -> Iterator[FaultProxy]:
    """A proxy on a loopback port before `target`, until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    host, port = listener.getsockname()
    running = FaultProxy(host, port, target)

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=_quietly, args=(running, client), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield running
    finally:
        running.release.set()
        # A close alone does not wake the thread that accepts.
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def _quietly(running: FaultProxy, client: socket.socket) -> None:
    try:
        running.serve(client)
    except OSError:
        client.close()  # the client or the server left: what the test is about is seen at the store


def _head(peer: socket.socket) -> tuple[bytes, bytes] | None:
    """The head with its empty line, and what came with it of the body; None at the end."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = peer.recv(65536)
        if not piece:
            return None
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    return head + b"\r\n\r\n", rest


def _body(peer: socket.socket, head: bytes, rest: bytes) -> bytes:
    lengths = [
        int(line.partition(b":")[2])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    ]
    length = lengths[0] if lengths else 0
    while len(rest) < length:
        piece = peer.recv(1 << 20)
        if not piece:
            break
        rest += piece
    return rest


def _flipped(data: bytes) -> bytes:
    place = len(data) // 2
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def _changed(head: bytes, name: bytes, value: bytes) -> bytes:
    lines = [
        name + b": " + value if line.lower().startswith(name + b":") else line for line in head.split(b"\r\n")
    ]
    return b"\r\n".join(lines)


def _reset(peer: socket.socket) -> None:
    """Close so that the other side sees a broken connection and not an end."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    peer.close()
