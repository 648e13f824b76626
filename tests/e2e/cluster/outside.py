"""Servers outside of the cluster, on addresses of this machine alone, that note who talks to them and when.

What a sandbox says of its own network is only half of the proof: the other half is what the far side saw.
"""

from __future__ import annotations

import socketserver
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tests.cluster import addresses

INTERFACE = "argo-harbor2"
RANGE = "203.0.113.0/24"
"""For documents only, hence nobody's; denied unless a platform opens it."""
SERVERS = {
    "setup": "203.0.113.10",
    "agent": "203.0.113.20",
    "verifier": "203.0.113.30",
    "closed": "203.0.113.40",
    "metadata": "169.254.169.254",
}
"""The last stands where clouds serve what a node may know."""
PORT = 80


def name_of(server: str) -> str:
    """A host name that resolves to the server."""
    return f"{server}.{SERVERS[server].replace('.', '-')}.{addresses.ADDRESS_DOMAIN}"


class Heard(NamedTuple):
    """One word that a server got, and answered."""

    server: str
    task: str
    word: str
    """`knock` on a connection of its own, `held` on one that is never given up."""
    at: float
    """Unix time."""
    connection: int
    """Number of the connection, the same for all of its words."""


class Outside:
    """What all servers heard."""

    def __init__(self) -> None:
        self._heard: list[Heard] = []
        self._lock = threading.Lock()
        self._connections = 0

    def heard(self, server: str, task: str) -> list[Heard]:
        """What a task's sandbox said to a server, in the order of arrival."""
        with self._lock:
            return [each for each in self._heard if (each.server, each.task) == (server, task)]

    def connected(self) -> int:
        with self._lock:
            self._connections += 1
            return self._connections

    def note(self, heard: Heard) -> None:
        with self._lock:
            self._heard.append(heard)


@contextmanager
def outside() -> Iterator[Outside]:
    """Bring the addresses up, serve on them, and take them away again."""
    _ip("link", "del", INTERFACE, check=False)
    _ip("link", "add", INTERFACE, "type", "bridge")
    servers: list[socketserver.ThreadingTCPServer] = []
    try:
        _ip("link", "set", INTERFACE, "up")
        seen = Outside()
        for name, address in SERVERS.items():
            _ip("address", "add", f"{address}/32", "dev", INTERFACE)
            servers.append(_server(name, address, seen))
            threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        yield seen
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
        _ip("link", "del", INTERFACE, check=False)


def _server(name: str, address: str, seen: Outside) -> socketserver.ThreadingTCPServer:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            connection = seen.connected()
            try:
                for line in self.rfile:
                    task, _, word = line.decode("ascii", "replace").strip().partition(" ")
                    seen.note(Heard(name, task, word, time.time(), connection))
                    self.wfile.write(b"yes\n")
            except OSError:
                return  # the network has ended it, which is what the tests are about

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True
        block_on_close = False

    return Server((address, PORT), Handler)


def _ip(*arguments: str, check: bool = True) -> None:
    subprocess.run(["ip", *arguments], check=check, capture_output=True)
