"""A real S3 server on a loopback port, for tests of everything that reads or writes an object store.

It is versitygw on a folder, built by :mod:`tests.support.gotools`: three minutes the first time on a machine.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support import gotools

START_SECONDS = 20.0

VERSITYGW = gotools.GoTool(
    name="versitygw",
    folder="versitygw",
    module="github.com/versity/versitygw",
    package="cmd/versitygw",
)


@dataclass(frozen=True)
class S3Server:
    """A running server with an empty bucket."""

    host: str
    port: int
    bucket: str
    access_key: str
    secret_key: str
    folder: Path
    """The bucket is a folder in it: an object's bytes can be damaged behind the server's back."""

    @property
    def endpoint(self) -> str:
        return f"http://{self.host}:{self.port}"


@contextmanager
def running(
    folder: Path, *, bucket: str = "harbor", region: str = "us-east-1", say: gotools.Say = print
) -> Iterator[S3Server]:
    """Start a server whose data lies in ``folder`` and stop it when the block ends.

    Raises:
        ToolUnavailable, ToolBuildFailed: as :func:`tests.support.gotools.build`.
    """
    program = gotools.build(VERSITYGW, say=say)
    data = folder / "data"
    (data / bucket).mkdir(parents=True)
    server = S3Server("127.0.0.1", _free_port(), bucket, "test-access", "test-secret-key", data)
    environment = os.environ | {
        "ROOT_ACCESS_KEY": server.access_key,
        "ROOT_SECRET_KEY": server.secret_key,
    }
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [
                str(program),
                "--quiet",
                "--keep-alive",
                f"--region={region}",
                f"--port={server.host}:{server.port}",
                "posix",
                str(data),
            ],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            _wait(process, server, folder / "server.log")
            yield server
        finally:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def _wait(process: subprocess.Popen[bytes], server: S3Server, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(f"the S3 server ended: {log.read_text()}")
        try:
            socket.create_connection((server.host, server.port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise AssertionError(f"the S3 server does not listen: {log.read_text()}")
