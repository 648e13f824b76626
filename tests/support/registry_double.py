"""A registry in the test's own process, for what a real one cannot be made to do: refuse, falter, be strange.

It knows manifests and logins and nothing else; a real one answers the contract and cluster tests.
"""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

Answer = tuple[int, dict[str, str], bytes]
Handler = Callable[[str, str, dict[str, str], bytes], Answer]
"""From method, path with query, headers and body to the answer."""


@contextmanager
def serving(handler: Handler) -> Iterator[str]:
    """A server that answers by the handler. Yields `host:port`."""

    class Requests(BaseHTTPRequestHandler):
        def _any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, headers, data = handler(self.command, self.path, dict(self.headers), body)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _any

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Registry:
    """Manifests by `repository:tag`, each the digest to name; with a login, tokens are asked for."""

    manifests: dict[str, str] = field(default_factory=dict)
    login: tuple[str, str] | None = None
    scheme: str = "bearer"
    status: int = 0
    """Answer everything with it."""
    names_digest: bool = True
    address: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        self.asked.append((method, target))
        if self.status:
            return self.status, {}, b""
        given = headers.get("Authorization", "")
        if target.startswith("/token"):
            refresh = parse_qs(body.decode()).get("refresh_token")
            good = refresh == ["refreshing"] if refresh else self.login is None or given == self._basic()
            return (200, {}, b'{"token": "t0ken"}') if good else (401, {}, b"")
        if self.login is not None and given not in ("Bearer t0ken", self._basic()):
            realm = f'Bearer realm="http://{self.address}/token",service="test",scope="repository:x:pull"'
            challenge = realm if self.scheme == "bearer" else f'{self.scheme} realm="test"'
            return 401, {"WWW-Authenticate": challenge}, b""
        found = re.fullmatch(r"/v2/(.+)/manifests/(.+)", target)
        digest = self.manifests.get(f"{found[1]}:{found[2]}") if found else None
        if digest is None:
            return 404, {}, b"{}"
        return 200, {"Docker-Content-Digest": digest} if self.names_digest else {}, b"the manifest"

    def _basic(self) -> str:
        return "Basic " + base64.b64encode(":".join(self.login or ()).encode()).decode()

    @contextmanager
    def running(self) -> Iterator[str]:
        with serving(self.answer) as address:
            self.address = address
            yield address
