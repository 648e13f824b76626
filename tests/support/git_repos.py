"""Git repositories made in tests, and the ways in which git serves them: over HTTP and its own protocol."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_WHO = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.invalid",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.invalid",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
}


@dataclass(frozen=True)
class Repository:
    """A repository with a working tree."""

    path: Path

    @classmethod
    def make(cls, path: Path, *, kind: str = "sha1") -> Repository:
        made = cls(path)
        path.mkdir(parents=True, exist_ok=True)
        made.git("init", "--quiet", "--initial-branch=main", f"--object-format={kind}")
        # Attributes that a test commits are for the reader: what is committed is what was written.
        (path / ".git/info").mkdir(exist_ok=True)
        (path / ".git/info/attributes").write_text("* -text -ident -filter -working-tree-encoding\n")
        return made

    def git(self, *arguments: str, given: bytes | None = None) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            env={**os.environ, **_WHO},
            input=given,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    def commit(self, files: Mapping[str, str | bytes] | None = None) -> str:
        """Commit the working tree with these files, as they are, and return the commit."""
        for name, content in (files or {}).items():
            place = self.path / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.encode() if isinstance(content, str) else content)
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "--message=change")
        return self.git("rev-parse", "HEAD")

    def tree(self, entries: Mapping[bytes, tuple[str, str]]) -> str:
        """A tree of exactly these (mode, id) by name, however impossible; returns its id."""
        raw = b"".join(
            mode.encode() + b" " + name + b"\0" + bytes.fromhex(identity)
            for name, (mode, identity) in entries.items()
        )
        return self.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", given=raw)

    def blob(self, content: bytes) -> str:
        return self.git("hash-object", "-w", "--stdin", given=content)

    def branch_of(self, tree: str, name: str) -> None:
        """A branch whose only commit has that tree."""
        self.git("update-ref", f"refs/heads/{name}", self.git("commit-tree", "-m", "forged", tree))


@dataclass
class GitServer:
    """`git http-backend` on loopback, for every repository below a folder."""

    root: Path
    login: tuple[str, str] | None = None
    """Asked of everybody when it is set."""
    old: bool = False
    """Speak the first version of the protocol, which gives only what a ref names."""
    port: int = 0
    sent: int = 0
    """Bytes of answers."""
    requests: list[str] = field(default_factory=list)

    def url(self, name: str, *, user: str = "") -> str:
        return f"http://{user}127.0.0.1:{self.port}/{name}"

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.requests.append(f"{handler.command} {handler.path}")
        body = _body(handler)
        if self.login and handler.headers.get("Authorization") != _basic(*self.login):
            handler.send_response(401)
            handler.send_header("WWW-Authenticate", 'Basic realm="git"')
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        path, _, query = handler.path.partition("?")
        environment = {
            **os.environ,
            **_WHO,
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": handler.command,
            "CONTENT_TYPE": handler.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": handler.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": "" if self.old else handler.headers.get("Git-Protocol", ""),
            "REMOTE_ADDR": "127.0.0.1",
        }
        done = subprocess.run(
            ["git", "http-backend"], env=environment, input=body, capture_output=True, check=False
        )
        head, _, data = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        handler.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)
        self.sent += len(data)


def _body(handler: BaseHTTPRequestHandler) -> bytes:
    if handler.headers.get("Transfer-Encoding") != "chunked":
        return handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
    parts = []
    while size := int(handler.rfile.readline(), 16):
        parts.append(handler.rfile.read(size))
        handler.rfile.readline()
    handler.rfile.readline()
    return b"".join(parts)


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@contextmanager
def git_over_http(root: Path, *, login: tuple[str, str] | None = None) -> Iterator[GitServer]:
    """Serve the repositories below `root`."""
    served = GitServer(root, login)

    class Requests(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            served.answer(self)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    with _serving(Requests) as port:
        served.port = port
        yield served


@contextmanager
def files_over_http(root: Path) -> Iterator[str]:
    """Serve the files below `root` as they lie there, by no git; yields its URL without a slash."""

    class Requests(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(root))

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    with _serving(Requests) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def git_daemon(root: Path) -> Iterator[str]:
    """Serve the repositories below `root` in git's own protocol; yields `git://…`, without the repository."""
    with listening() as server:

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    subprocess.run(
                        ["git", "daemon", "--inetd", "--export-all", f"--base-path={root}"],
                        env={**os.environ, **_WHO},
                        stdin=client,
                        stdout=client,
                        stderr=subprocess.DEVNULL,
                        check=False,
                    )

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"git://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextmanager
def listening() -> Iterator[socket.socket]:
    """A socket on loopback to which one can connect, and that says nothing by itself."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server
