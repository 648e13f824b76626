"""Counts what egress refused: it reports each refusal to an address on loopback, where this listens.

The sandbox shares the network and may post as well, so the path holds a secret. All the same everything that
arrives is bounded: names, hosts, connections. egress drops reports when many come at once, so counts are
lower bounds.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path

from argo_harbor.model.record import RefusedHost

MAX_HOSTS = 256
"""Distinct hosts of one phase; the rest is counted together."""
OTHERS = "(others)"
MAX_BODY = 4096
MAX_HEAD = 8192
REQUEST_SECONDS = 5.0
_NAME = re.compile(r"[a-z0-9_*-]([a-z0-9_.*-]{0,251}[a-z0-9_-])?")
_RESOLVER = Path("/etc/resolv.conf")


def secret_path(token: str) -> str:
    """Where egress posts to: derived from its token, since a failed delivery puts the address into its
    log."""
    return f"/denied/{hashlib.sha256(token.encode()).hexdigest()}"


class Refusals:
    """The counters of a trial's phases."""

    def __init__(self, *, ignored: Iterable[str] = (), domains: Iterable[str] = ()) -> None:
        """`ignored` are addresses of our own probes; `domains` the resolver's search domains."""
        self._ignored = frozenset(ignored)
        self._domains = tuple(f".{domain.strip('.').lower()}" for domain in domains)
        self._phase = "before"
        self._counts: dict[str, Counter[str]] = {}

    def enter(self, phase: str) -> None:
        """Count for another phase from now on."""
        self._phase = phase

    def note(self, host: object) -> bool:
        """Count one refusal. Returns False for what is no host."""
        name = self._folded(host) if isinstance(host, str) else ""
        if not name:
            return False
        if name not in self._ignored:
            counts = self._counts.setdefault(self._phase, Counter())
            counts[name if name in counts or len(counts) < MAX_HOSTS else OTHERS] += 1
        return True

    def report(self) -> dict[str, tuple[RefusedHost, ...]]:
        """Refused hosts of each phase, the most frequent first."""
        return {
            phase: tuple(
                RefusedHost(host=host, count=count)
                for host, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
            )
            for phase, counts in self._counts.items()
        }

    def _folded(self, host: str) -> str:
        """The host in one spelling, without a search domain that the resolver tried; empty for no host."""
        name = host.strip().rstrip(".").lower()
        try:
            return str(ip_address(name))
        except ValueError:
            pass  # a name, as most are
        for domain in self._domains:
            name = name.removesuffix(domain)
        return name if _NAME.fullmatch(name) else ""


def search_domains(file: Path = _RESOLVER) -> tuple[str, ...]:
    """Search domains of the pod's resolver, longest first; none when there is no such file."""
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        return ()
    found = [word for line in lines if line.startswith("search") for word in line.split()[1:]]
    return tuple(sorted(found, key=len, reverse=True))


async def listen(refusals: Refusals, path: str, *, port: int) -> asyncio.Server:
    """Take reports until the server is closed. Raises OSError when the port is taken."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                status = await _take(reader, refusals, path)
                writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
                await writer.drain()
        except (TimeoutError, OSError, EOFError, asyncio.LimitOverrunError):
            return  # whoever called did not speak as egress does
        finally:
            writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", port, limit=MAX_HEAD)


async def _take(reader: asyncio.StreamReader, refusals: Refusals, path: str) -> str:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, _, rest = head.partition("\r\n")
    method, _, target = first.partition(" ")
    if method != "POST" or target.partition(" ")[0] != path:
        return "404 Not Found"
    found = re.search(r"^content-length:\s*(\d{1,9})\s*$", rest, re.IGNORECASE | re.MULTILINE)
    length = int(found[1]) if found else 0
    if not 0 < length <= MAX_BODY:
        return "400 Bad Request"
    try:
        event = json.loads(await reader.readexactly(length))
    except (ValueError, RecursionError):
        return "400 Bad Request"
    host = event.get("hostname") if isinstance(event, dict) else None
    return "204 No Content" if refusals.note(host) else "400 Bad Request"
