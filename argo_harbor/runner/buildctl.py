"""Runs BuildKit's client: its command line, and its process until it ends or is told to."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from argo_harbor.planning.images import DOCKERFILE
from argo_harbor.workflow.buildkit import ADDRESS, CLIENT_PATH

PROGRAM = f"{CLIENT_PATH}/buildctl"
_LOOK_SECONDS = 0.2
"""How often it is looked whether the build shall stop."""
_STOP_SECONDS = 5.0
"""What the client gets to cancel its build in the daemon."""
_SAID_LINES = 60
_MAX_EVENT_BYTES = 64 << 20

Event = Mapping[str, object]


class Ended(NamedTuple):
    """How the client ended."""

    status: int
    said: str
    """What it wrote besides progress: the last lines."""


class BuildRequest(NamedTuple):
    """What to build."""

    context: Path
    dockerfile: Path
    reference: str
    """The image to push."""
    cache: str
    """Image that holds the build cache."""
    use_cache: bool
    """Whether that image is there."""
    plain_http: bool
    """Whether the registry that is pushed to speaks plain HTTP."""
    own_frontend: bool
    """Whether the Dockerfile asks for a frontend image that is more than the one built into the daemon."""
    metadata: Path
    """File that the client writes its results to."""
    target: str = ""
    """Build stage to stop at; empty for the last."""
    arguments: Iterable[tuple[str, str]] = ()
    """Values of build arguments by name."""
    secrets: Mapping[str, Path] = MappingProxyType({})
    """Files with the values of secrets by id."""


def command(build: BuildRequest, *, program: str = PROGRAM, address: str = ADDRESS) -> list[str]:
    """The client's command line."""
    insecure = ",registry.insecure=true" if build.plain_http else ""
    arguments = [
        *(program, "--addr", address, "build", "--progress", "rawjson"),
        *("--frontend", "dockerfile.v0", "--opt", "platform=linux/amd64"),
        *("--local", f"context={build.context}", "--local", f"dockerfile={build.dockerfile.parent}"),
        *("--output", f"type=image,name={build.reference},push=true{insecure}"),
        *("--metadata-file", str(build.metadata)),
        "--export-cache",
        f"type=registry,ref={build.cache},mode=max,image-manifest=true,oci-mediatypes=true,ignore-error=true"
        + insecure,
    ]
    if build.dockerfile.name != DOCKERFILE:
        arguments += ["--opt", f"filename={build.dockerfile.name}"]
    if build.target:
        arguments += ["--opt", f"target={build.target}"]
    for name, value in build.arguments:
        arguments += ["--opt", f"build-arg:{name}={value}"]
    for identity, file in build.secrets.items():
        arguments += ["--secret", f"id={identity},src={file}"]
    if build.use_cache:
        arguments += ["--import-cache", f"type=registry,ref={build.cache}{insecure}"]
    if not build.own_frontend:
        # The frontend looks for a "# syntax=" line only where it was not started from one already.
        arguments += ["--opt", "cmdline=built-in"]
    return arguments


def image_digest(metadata: Path) -> str:
    """Digest of the pushed image, out of the client's results; empty when they do not say."""
    try:
        found = json.loads(metadata.read_bytes()).get("containerimage.digest")
    except (OSError, ValueError, AttributeError):
        return ""
    return found if isinstance(found, str) else ""


def run(
    arguments: Sequence[str],
    environ: Mapping[str, str],
    *,
    on_event: Callable[[Event], None],
    stop: Callable[[], bool],
) -> Ended:
    """Run the client to its end. When `stop` says so it is asked to cancel, and killed if it does not.

    Raises OSError when it cannot be started.
    """
    said: deque[str] = deque(maxlen=_SAID_LINES)
    process = subprocess.Popen(
        arguments,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        if not _follow(process, on_event, said, stop):
            _end(process)
        return Ended(process.wait(), "\n".join(said))
    finally:
        _end(process)


def _follow(
    process: subprocess.Popen[bytes],
    on_event: Callable[[Event], None],
    said: deque[str],
    stop: Callable[[], bool],
) -> bool:
    """Read events. True when the client has closed its output, False when the build shall stop."""
    pipe = process.stderr
    if pipe is None:
        raise ValueError("the client's output is not connected")
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while not stop():
            if not selector.select(_LOOK_SECONDS):
                continue
            piece = os.read(pipe.fileno(), 1 << 16)
            *whole, rest = (rest + piece).split(b"\n")
            if not piece or len(rest) > _MAX_EVENT_BYTES:
                whole, rest = [*whole, rest], b""
            for line in whole:
                _take(line, on_event, said)
            if not piece:
                return True
    return False


def _take(line: bytes, on_event: Callable[[Event], None], said: deque[str]) -> None:
    with contextlib.suppress(ValueError):
        event = json.loads(line)
        if isinstance(event, dict):
            on_event(event)
            return
    if text := line.decode(errors="replace").rstrip():
        said.append("".join(char if char.isprintable() else " " for char in text)[:2000])


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stderr is not None:
        process.stderr.close()
