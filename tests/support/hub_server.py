"""A small Hub on loopback: the real one can be had neither offline nor broken in the ways that matter.

It answers what Harbor's own client asks for a dataset: PostgREST tables and one function, a storage bucket
and the exchange of an API key. Archives, content hashes and dataset hashes are made by Harbor's publisher, so
that only the transport is a stand-in. Rows and objects are plain attributes: a test that wants a lie changes
them.
"""

from __future__ import annotations

import functools
import hashlib
import json
import ssl
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from harbor.models.dataset.manifest import DatasetFileRef, DatasetInfo, DatasetManifest, DatasetTaskRef
from harbor.models.task.config import TaskConfig
from harbor.publisher.packager import Packager
from harbor.publisher.publisher import Publisher

KEY = "sk-harbor-test_secret"
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@dataclass
class TaskVersion:
    name: str
    digest: str
    archive: str
    yanked: str | None = None
    hidden: bool = False
    says: str = ""
    """What the Hub resolves the version to, when that is not its digest."""

    def row(self, number: str) -> dict[str, Any]:
        org, _, short = self.name.partition("/")
        seen = {"content_hash": self.digest, "package": {"name": short, "org": {"name": org}}}
        return {"task_version_id": number, "task_version": None if self.hidden else seen}

    def resolved(self) -> dict[str, Any]:
        return {
            "id": "some-id",
            "archive_path": self.archive,
            "content_hash": self.says or self.digest,
            "yanked_at": None if self.yanked is None else "2026-01-01",
            "yanked_reason": self.yanked,
        }


@dataclass
class DatasetVersion:
    name: str
    revision: int
    digest: str
    tasks: list[TaskVersion]
    files: list[dict[str, Any]] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    yanked: str | None = None

    @property
    def number(self) -> str:
        return f"{self.name}-{self.revision}"

    def row(self) -> dict[str, Any]:
        return {
            "id": self.number,
            "revision": self.revision,
            "content_hash": self.digest,
            "yanked_at": None if self.yanked is None else "2026-01-01",
            "yanked_reason": self.yanked,
            "tags": [{"tag": tag} for tag in self.tags],
        }


@dataclass
class Fault:
    """What happens to requests whose line holds `where`, `times` times."""

    where: str
    status: int = 0
    body: bytes = b""
    hangs: bool = False
    breaks_off: bool = False
    """The connection ends in the middle of the answer."""
    times: int = 1


@dataclass
class Hub:
    """What is published, what was asked, what goes wrong."""

    url: str = ""
    versions: list[DatasetVersion] = field(default_factory=list)
    packages: dict[str, str] = field(default_factory=dict)
    """Name and type, `dataset` or `task`, of what is there besides the versions."""
    objects: dict[str, bytes] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    private: bool = False
    """Shows nothing without the token of `KEY`."""
    asked: list[str] = field(default_factory=list)
    """Method and path with query of each request."""
    released: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def publish(self, name: str, *folders: Path, files: dict[str, bytes] | None = None) -> DatasetVersion:
        """A new version, tagged latest, of the tasks in `folders`."""
        tasks = [self.publish_task(folder) for folder in folders]
        listed = [
            {"path": path, "storage_path": f"packages/{name}/{path}", "content_hash": _sha(data)}
            for path, data in (files or {}).items()
        ]
        manifest = DatasetManifest(
            dataset=DatasetInfo(name=name),
            tasks=[DatasetTaskRef(name=task.name, digest=f"sha256:{task.digest}") for task in tasks],
            files=[
                DatasetFileRef(path=row["path"], digest=f"sha256:{row['content_hash']}") for row in listed
            ],
        )
        earlier = [version for version in self.versions if version.name == name]
        for version in earlier:
            version.tags = [tag for tag in version.tags if tag != "latest"]
        digest = manifest.compute_content_hash()
        made = DatasetVersion(name, len(earlier) + 1, digest, tasks, listed, ["latest"])
        self.versions.append(made)
        return made

    def publish_task(self, folder: Path) -> TaskVersion:
        name, digest, archive = _packed(folder)
        place = f"packages/{name}/{digest}/dist.tar.gz"
        self.objects[place] = archive
        return TaskVersion(name, digest, place)

    def downloads(self) -> list[str]:
        return [line for line in self.asked if "/storage/" in line]

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        parts = urlsplit(target)
        query = {key: values[-1].removeprefix("eq.") for key, values in parse_qs(parts.query).items()}
        if parts.path == "/functions/v1/api-key-exchange":
            good = json.loads(body)["api_key"] == KEY
            return (200, b'{"access_token": "t0ken", "expires_in": 900}') if good else (401, b"{}")
        signed = headers.get("authorization") == "Bearer t0ken"
        if parts.path.startswith("/storage/v1/object/packages/"):
            data = self.objects.get(unquote(parts.path.removeprefix("/storage/v1/object/packages/")))
            missing = {"statusCode": "404", "error": "not_found", "message": "Object not found"}
            return (400, json.dumps(missing).encode()) if data is None else (200, data)
        kind = parts.path.removeprefix("/rest/v1/")
        rows = [] if self.private and not signed else self._rows(kind, query, body)
        return 200, json.dumps(rows).encode()

    def _rows(self, kind: str, query: dict[str, str], body: bytes) -> Any:
        name = f"{query.get('package.org.name', '')}/{query.get('package.name', '')}"
        of_name = [version for version in self.versions if version.name == name]
        of_number = [
            version
            for version in self.versions
            if version.number in (query.get("dataset_version_id"), query.get("id"))
        ]
        package = {"id": name, "name": name.partition("/")[2], "type": "dataset"}
        match kind:
            case "dataset_version_tag":
                return [
                    {"package": package, "dataset_version": version.row()}
                    for version in of_name
                    if query["tag"] in version.tags
                ]
            case "dataset_version" if "package_id" in query:
                return [v.row() for v in reversed(self.versions) if v.name == query["package_id"]]
            case "dataset_version":
                return [
                    {**version.row(), "package": package}
                    for version in of_name
                    if query.get("revision", str(version.revision)) == str(version.revision)
                    and query.get("content_hash", version.digest) == version.digest
                ]
            case "dataset_version_task":
                rows = [
                    task.row(str(place)) for version in of_number for place, task in enumerate(version.tasks)
                ]
                return rows[int(query["offset"]) :][: int(query["limit"])]
            case "dataset_version_file":
                return [row for version in of_number for row in version.files]
            case "task_version_download" | "task_version":
                return []
            case "package":
                return self._packages(query)
            case "rpc/resolve_task_version":
                asked = json.loads(body)
                wanted = f"{asked['p_org']}/{asked['p_name']}", asked["p_ref"].removeprefix("sha256:")
                for version in self.versions:
                    for task in version.tasks:
                        if (task.name, task.digest) == wanted:
                            return task.resolved()
                return None
        raise AssertionError(f"the stand-in does not know {kind}")

    def _packages(self, query: dict[str, str]) -> list[dict[str, str]]:
        every = {**self.packages, **{version.name: "dataset" for version in self.versions}}
        return [
            {"id": full, "name": full.partition("/")[2], "type": kind}
            for full, kind in every.items()
            if full.startswith(query["org.name"] + "/")
            and query.get("name", full.partition("/")[2]) == full.partition("/")[2]
            and query.get("type", kind) == kind
        ]

    def fault(self, line: str) -> Fault | None:
        with self.lock:
            self.asked.append(line)
            for fault in self.faults:
                if fault.times and fault.where in line:
                    fault.times -= 1
                    return fault
        return None


def point_harbor_at(hub: Hub, monkeypatch: pytest.MonkeyPatch, home: Path) -> Path:
    """Let Harbor in this process, which took its settings at import, use the Hub and a home folder.

    Gives the folder of its package cache.
    """
    for module in ("client", "tokens"):
        monkeypatch.setattr(f"harbor.auth.{module}.SUPABASE_URL", hub.url)
    monkeypatch.setattr("harbor.auth.credentials.CREDENTIALS_PATH", home / ".harbor/credentials.json")
    monkeypatch.delenv("HARBOR_API_KEY", raising=False)
    # Or each client of each conversation would take a tenth of a second, for a server that has no TLS.
    monkeypatch.setattr("httpx._transports.default.create_ssl_context", lambda **_: _NO_TLS)
    cache = home / ".cache/harbor/tasks/packages"
    monkeypatch.setattr("harbor.constants.PACKAGE_CACHE_DIR", cache)
    return cache


class _Server(ThreadingHTTPServer):
    def handle_error(self, *about: Any) -> None:
        """Clients that give up are part of the tests."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(*about)


@contextmanager
def serving_hub() -> Iterator[Hub]:
    """An empty Hub on a port of its own."""
    hub = Hub()

    class Requests(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            fault = hub.fault(f"{self.command} {self.path}")
            if fault is not None and fault.hangs:
                hub.released.wait(30)
                self.close_connection = True
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, data = hub.answer(self.command, self.path, headers, body)
            if fault is not None and not fault.breaks_off:
                status, data = fault.status, fault.body
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if fault is not None and fault.breaks_off:
                data = data[: len(data) // 2]
                self.close_connection = True
            self.wfile.write(data)

        do_GET = do_POST = _any

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = _Server(("127.0.0.1", 0), Requests)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        hub.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


@functools.cache
def _packed(folder: Path) -> tuple[str, str, bytes]:
    """Name, content hash and archive of a task, whose folder must stay as it is."""
    digest, files = Packager.compute_content_hash(folder)
    config = TaskConfig.model_validate_toml((folder / "task.toml").read_text())
    assert config.task is not None
    with tempfile.TemporaryDirectory() as made:
        archive = Path(made, "dist.tar.gz")
        Publisher._create_archive(folder.resolve(), files, archive)
        return config.task.name, digest, archive.read_bytes()


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
