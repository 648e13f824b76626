"""HTTP servers on loopback that stand in for what a unit test cannot have: an API server, a registry.

They hold objects in memory and speak just enough of the protocol; the real ones are in the contract and
cluster tests.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kubernetes.client import ApiClient, Configuration

from argo_harbor.cluster.client import Cluster

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
class ApiServer:
    """Objects by their path; lists are what lies below a path. Selectors: equality and existence of labels,
    equality of fields."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    faults: list[Answer] = field(default_factory=list)
    """Answers to give first, whatever is asked."""
    forbidden: str = ""
    """What stands in a path that nobody may see."""
    changed: Callable[[ApiServer, str, str], None] | None = None
    """Called after every request with its method and path."""

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        parts = urlsplit(target)
        self.requests.append((method, parts.path))
        if self.faults:
            return self.faults.pop(0)
        if self.forbidden and self.forbidden in parts.path:
            return _status(403, "Forbidden")
        try:
            return self._answer(method, parts.path, parse_qs(parts.query), body)
        finally:
            if self.changed is not None:
                self.changed(self, method, parts.path)

    def _answer(self, method: str, path: str, query: dict[str, list[str]], body: bytes) -> Answer:
        if method == "POST":
            given = json.loads(body)
            place = f"{path}/{given['metadata']['name']}"
            if place in self.objects:
                return _status(409, "AlreadyExists")
            given["metadata"].setdefault("uid", f"uid-of-{given['metadata']['name']}")
            self.objects[place] = given
            return _json(given)
        if path in self.objects:
            found = self.objects[path]
            if method == "PATCH":
                _merge(found, json.loads(body))
            elif method == "DELETE":
                del self.objects[path]
            return _json(found)
        if path.rsplit("/", 1)[-1] in ("workflows", "pods", "events"):
            items = [each for key, each in self.objects.items() if key.startswith(f"{path}/")]
            return _json({"items": [each for each in items if _selected(each, query)]})
        return _status(404, "NotFound")

    @contextmanager
    def cluster(self, namespace: str = "evals") -> Iterator[Cluster]:
        with serving(self.answer) as address:
            configuration = Configuration(host=f"http://{address}")
            yield Cluster(ApiClient(configuration), context="test", namespace=namespace)


def _selected(item: dict[str, Any], query: dict[str, list[str]]) -> bool:
    labels = item.get("metadata", {}).get("labels") or {}
    wanted = [each for each in ",".join(query.get("labelSelector", [])).split(",") if each]
    for each in wanted:
        name, equals, value = each.partition("=")
        if (labels.get(name) != value) if equals else (name not in labels):
            return False
    for each in [each for each in ",".join(query.get("fieldSelector", [])).split(",") if each]:
        name, _, value = each.partition("=")
        found: Any = item
        for part in name.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        if found != value:
            return False
    return True


def _merge(into: dict[str, Any], patch: dict[str, Any]) -> None:
    for key, value in patch.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _json(data: Any, status: int = 200) -> Answer:
    return status, {"Content-Type": "application/json"}, json.dumps(data).encode()


def _status(status: int, reason: str) -> Answer:
    return _json({"kind": "Status", "reason": reason, "message": f"said {reason}"}, status)


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
            return _json({"token": "t0ken"}) if good else _status(401, "Unauthorized")
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
