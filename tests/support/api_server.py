"""An API server in the test's own process: objects in memory behind the paths that Kubernetes has.

A real one answers the tests marked ``cluster``; this one is there for what a real one cannot be made to do in
milliseconds: lose an answer, hang, refuse, hold a status of any shape. It knows no kinds and checks nothing
but names.
"""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

type Json = dict[str, Any]

CONTEXT = "double"
_NAMESPACED = re.compile(r"(/api/v1|/apis/[^/]+/[^/]+)/namespaces/([^/]+)/([^/]+)(?:/([^/]+))?(?:/([^/]+))?")


@dataclass
class Trouble:
    """What happens instead of an answer."""

    method: str
    path: str
    """Part of the path."""
    status: int = 500
    reason: str = ""
    message: str = "made to fail"
    after: bool = False
    """Do what was asked, then fail: the answer is lost, the object is there."""
    times: int = 1


@dataclass
class ApiServer:
    """Objects by path; ``asked`` has every request as ``(method, path)``."""

    url: str = ""
    user: str = "somebody"
    objects: dict[str, Json] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
    """By pod."""
    troubles: list[Trouble] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    hang: threading.Event = field(default_factory=threading.Event)
    """Set at the end: requests that a test lets hang wait for it."""
    hanging: bool = False
    date: str = ""
    """The ``Date`` header; the machine's own clock when empty."""

    def put(self, path: str, body: Json) -> Json:
        """Store an object as it is, with a uid if it has none."""
        metadata = body.setdefault("metadata", {})
        metadata.setdefault("name", path.rpartition("/")[2])
        metadata.setdefault("uid", str(uuid.uuid4()))
        metadata.setdefault("creationTimestamp", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        self.objects[path] = body
        return body

    def workflow(self, name: str, namespace: str = "argo-harbor") -> Json:
        return self.objects[f"/apis/argoproj.io/v1alpha1/namespaces/{namespace}/workflows/{name}"]

    def named(self, kind: str) -> list[str]:
        """Names of the objects of a kind in the plural."""
        return [path.rpartition("/")[2] for path in self.objects if path.split("/")[-2] == kind]

    def write_kubeconfig(self, path: Path, *, namespace: str = "") -> Path:
        context: Json = {"cluster": "c", "user": "u"} | ({"namespace": namespace} if namespace else {})
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": CONTEXT,
            "clusters": [{"name": "c", "cluster": {"server": self.url}}],
            "users": [{"name": "u", "user": {"token": "a-token"}}],
            "contexts": [{"name": CONTEXT, "context": context}],
        }
        path.write_text(yaml.safe_dump(document))
        return path

    def answer(self, method: str, target: str, body: Json | None) -> tuple[int, Json | str]:
        parts = urlsplit(target)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        self.asked.append((method, parts.path))
        if self.hanging:
            self.hang.wait(30)
        for trouble in self.troubles:
            if trouble.times and method == trouble.method and trouble.path in parts.path:
                trouble.times -= 1
                if trouble.after:
                    self._handle(method, parts.path, query, body)
                return trouble.status, _status(trouble.status, trouble.reason, trouble.message)
        return self._handle(method, parts.path, query, body)

    def _handle(
        self, method: str, path: str, query: dict[str, str], body: Json | None
    ) -> tuple[int, Json | str]:
        if path == "/version":
            return 200, {"major": "1", "minor": "34"}
        if path.endswith("/selfsubjectreviews"):
            return 201, {"status": {"userInfo": {"username": self.user}}}
        found = _NAMESPACED.fullmatch(path)
        if found is None:
            return 404, _status(404, "NotFound", f"no such path: {path}")
        name, part = found[4], found[5]
        if part == "log":
            return (
                (200, self.logs[name]) if name in self.logs else (400, _status(400, "BadRequest", "no log"))
            )
        if method == "GET":
            return self._get(path, query) if name else (200, self._list(path, query))
        dry = query.get("dryRun") == "All"
        if method == "POST" and body is not None:
            return self._create(f"{path}/{body['metadata']['name']}", body, dry=dry)
        if method == "PATCH" and body is not None:
            return self._patch(path, body, create="fieldManager" in query, dry=dry)
        if method == "DELETE":
            gone = self.objects.pop(path, None)
            return (200, gone) if gone is not None else (404, _status(404, "NotFound", f"{name} not found"))
        return 405, _status(405, "MethodNotAllowed", method)

    def _get(self, path: str, query: dict[str, str]) -> tuple[int, Json]:
        if path in self.objects:
            return 200, self.objects[path]
        return 404, _status(404, "NotFound", f"{path.rpartition('/')[2]} not found")

    def _list(self, path: str, query: dict[str, str]) -> Json:
        items = [
            item
            for key, item in sorted(self.objects.items())
            if key.rpartition("/")[0] == path and _selected(item, query.get("labelSelector", ""))
        ]
        start, limit = int(query.get("continue", 0)), int(query.get("limit", 500))
        following = {"continue": str(start + limit)} if len(items) > start + limit else {}
        return {"items": items[start : start + limit], "metadata": following}

    def _create(self, path: str, body: Json, *, dry: bool) -> tuple[int, Json]:
        if path in self.objects:
            return 409, _status(409, "AlreadyExists", f"{path.rpartition('/')[2]} already exists")
        if dry:
            return 201, body
        created = json.loads(json.dumps(body))
        return 201, self.put(path, created)

    def _patch(self, path: str, body: Json, *, create: bool, dry: bool) -> tuple[int, Json]:
        if path not in self.objects and not create:
            return 404, _status(404, "NotFound", f"{path.rpartition('/')[2]} not found")
        if not dry:
            self.put(path, _merged(self.objects.get(path, {}), body))
        return 200, self.objects.get(path, body)


@contextmanager
def running[Double: ApiServer](double: Double) -> Iterator[Double]:
    """Serve until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # In one piece: a second small packet would wait for the first one's confirmation, 40 ms.
        wbufsize = 1 << 16

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, answer = double.answer(self.command, self.path, body)
            data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
            self.send_response_only(status)
            self.send_header("Date", double.date or self.date_time_string())
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_DELETE = _serve

        def log_message(self, format: str, *args: object) -> None:
            """Tests look at ``asked``."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    double.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield double
    finally:
        double.hang.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _status(status: int, reason: str, message: str) -> Json:
    return {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": status}


def _selected(item: Json, selector: str) -> bool:
    labels = item["metadata"].get("labels") or {}
    for term in filter(None, selector.split(",")):
        key, unequal, value = term.partition("!=")
        if unequal:
            if labels.get(key) == value:
                return False
            continue
        key, equal, value = term.partition("=")
        if labels.get(key) != value if equal else key not in labels:
            return False
    return True


def _merged(old: Json, new: Json) -> Json:
    merged = dict(old)
    for key, value in new.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = _merged(merged[key], value)
        else:
            merged[key] = value
    return merged
