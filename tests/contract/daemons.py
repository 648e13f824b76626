"""Starts execd and egress as the trial pod does, and waits until they answer."""

from __future__ import annotations

import http.client
import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.contract.namespaces import Namespace
from tests.contract.outside import RESOLVER
from tests.contract.sdk import EGRESS_HEADER, EGRESS_PORT, EXECD_HEADER, EXECD_PORT

EXECD_TOKEN = "execd-token"
EGRESS_TOKEN = "egress-token"
START_SECONDS = 15.0


class Program(NamedTuple):
    """One implementation of a daemon."""

    path: Path
    ours: bool
    """Whether it is the stand-in; it promises more than the published program."""


class Reply(NamedTuple):
    status: int
    body: str

    def json(self) -> object:
        return json.loads(self.body)


def call(
    port: int, method: str, path: str, body: str | None = None, *, headers: Mapping[str, str] | None = None
) -> Reply:
    """One HTTP request to a daemon of the namespace that this thread has entered."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, body=body, headers=dict(headers or {}))
        response = connection.getresponse()
        return Reply(response.status, response.read().decode())
    finally:
        connection.close()


class Egress:
    """A running egress of a pod, and calls to it."""

    def __init__(self, program: Program, pod: Namespace, env: Mapping[str, str], log: Path) -> None:
        self.log = log
        # As in the pod: root with no other capability and no way to get one.
        command = ["setpriv", "--bounding-set", "-all,+net_admin", "--no-new-privs", program.path]
        settings = {
            "MODE": "dns+nft",
            "TOKEN": EGRESS_TOKEN,
            "DNS_UPSTREAM": RESOLVER,
            # The published program calls its resolver unhealthy, and asks none, until a probe succeeds.
            "DNS_UPSTREAM_PROBE": "zone.example",
            **env,
        }
        with log.open("a") as output:
            self.process = pod.start(
                command,
                env={f"OPENSANDBOX_EGRESS_{name}": value for name, value in settings.items()},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def wait(self) -> None:
        """Wait until it answers. Raises: AssertionError when it ends instead."""
        _wait(self.process, self.log, lambda: call(EGRESS_PORT, "GET", "/healthz"))

    def ask(self, method: str, body: object = None, *, token: str | None = EGRESS_TOKEN) -> Reply:
        """Call the policy's interface; text is sent as it is."""
        text = body if isinstance(body, str) or body is None else json.dumps(body)
        headers = {} if token is None else {EGRESS_HEADER: token}
        return call(EGRESS_PORT, method, "/policy", text, headers=headers)

    def set(self, *targets: str, deny: tuple[str, ...] = (), default: str = "deny") -> None:
        """Replace the policy; denied targets stand first."""
        rules = [{"action": "deny", "target": each} for each in deny]
        rules += [{"action": "allow", "target": each} for each in targets]
        reply = self.ask("PUT", {"defaultAction": default, "egress": rules})
        assert reply.status == 200, reply


@contextmanager
def execd(
    program: Program, place: Namespace, folder: Path, *, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A running execd whose scratch folder is below `folder`."""
    scratch, log = folder / "scratch", folder / "execd.log"
    scratch.mkdir(parents=True, exist_ok=True)
    settings = {
        "EXECD_ACCESS_TOKEN": EXECD_TOKEN,
        "EXECD_API_GRACE_SHUTDOWN": "0s",
        "EXECD_ENVS": str(folder / "env"),
        "TMPDIR": str(scratch),
        **(env or {}),
    }
    with log.open("w") as output:
        process = place.start([program.path], env=settings, stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait(process, log, ping)
        yield process
    finally:
        process.kill()
        process.wait()


def ping() -> Reply:
    return call(EXECD_PORT, "GET", "/ping", headers={EXECD_HEADER: EXECD_TOKEN})


def _wait(process: subprocess.Popen[str], log: Path, probe: Callable[[], Reply]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            if probe().status == 200:
                return
        except OSError:
            pass  # not listening yet
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)
