"""Network namespaces that stand for a pod and for the world around it; gone when the test is over."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_MOUNTS = Path("/run/netns")


class Namespace:
    """One network namespace, with nothing but loopback at first."""

    def __init__(self, name: str) -> None:
        self.name = name
        _ip("netns", "add", name)
        self.configure("link", "set", "lo", "up")

    def configure(self, *arguments: str) -> None:
        """Run `ip` in it."""
        _ip("-n", self.name, *arguments)

    def start(
        self, command: Sequence[str | Path], *, env: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[str]:
        """Start a program in it."""
        return subprocess.Popen(
            ["ip", "netns", "exec", self.name, *map(str, command)],
            env={**os.environ, **(env or {})},
            text=True,
            **options,
        )

    def run(self, command: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a program in it to its end."""
        return subprocess.run(
            ["ip", "netns", "exec", self.name, *map(str, command)],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            **options,
        )

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Have the sockets that this thread makes be in it."""
        own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        inside = os.open(_MOUNTS / self.name, os.O_RDONLY)
        try:
            os.setns(inside, os.CLONE_NEWNET)
            try:
                yield
            finally:
                os.setns(own, os.CLONE_NEWNET)
        finally:
            os.close(inside)
            os.close(own)

    def remove(self) -> None:
        """End what runs in it and delete it."""
        left = subprocess.run(
            ["ip", "netns", "pids", self.name], capture_output=True, text=True, check=True
        ).stdout
        for pid in left.split():
            os.kill(int(pid), signal.SIGKILL)
        _ip("netns", "del", self.name)


@contextmanager
def namespaces(*roles: str) -> Iterator[list[Namespace]]:
    """Namespaces named after their roles and this process."""
    made: list[Namespace] = []
    try:
        made.extend(Namespace(f"ah-{os.getpid()}-{role}") for role in roles)
        yield made
    finally:
        for each in made:
            each.remove()


INSIDE = ("10.77.0.2/24", "2001:db8:77::2/64")
OUTSIDE = ("10.77.0.1/24", "2001:db8:77::1/64")


def connect(inner: Namespace, outer: Namespace, *, also: Sequence[str]) -> None:
    """Lay a cable between them; `outer` is the way to everything and has the addresses `also` too."""
    _ip(
        "link",
        "add",
        "eth0",
        "netns",
        inner.name,
        "type",
        "veth",
        "peer",
        "name",
        "eth0",
        "netns",
        outer.name,
    )
    for each, addresses in ((inner, INSIDE), (outer, OUTSIDE)):
        each.configure("link", "set", "eth0", "up")
        for address in addresses:
            each.configure("addr", "add", address, "dev", "eth0", *_at_once(address))
    for address in also:
        outer.configure("addr", "add", address, "dev", "lo", *_at_once(address))
    for address in OUTSIDE:
        inner.configure("route", "add", "default", "via", address.partition("/")[0])


def _at_once(address: str) -> list[str]:
    """IPv6 would wait a second to see whether anybody else has the address."""
    return ["nodad"] if ":" in address else []


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
