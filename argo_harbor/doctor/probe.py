"""What runs in probe pods, in the runner's image: `python -m argo_harbor.doctor.probe NAME [JSON]`.

An answer is one JSON object in the container's termination message, which who may see the pod may read:
no right to logs is needed. It holds at most the 4 KiB that Kubernetes keeps.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

type Json = dict[str, Any]

ANSWER_PATH = Path("/dev/termination-log")
PORT = 8080
CONNECT_SECONDS = 2.0
SETTLE_SECONDS = 12.0
"""How long a fence may take to be what it should be around a new pod."""
_ERROR_CHARS = 600


def serve(question: Json) -> Json:
    """Take connections until the pod is deleted."""
    with socket.create_server(("", int(question.get("port", PORT)))) as listening:
        while True:
            connection, _ = listening.accept()
            connection.close()


def connect(question: Json) -> Json:
    """Whether a pod reaches an address at all, with no policy around it."""
    return {"error": _until_fine(lambda: _reach(question["target"], PORT))}


def fenced(question: Json) -> Json:
    """What a pod reaches behind the policy that every run has: all but the target should be open."""
    began = time.monotonic()
    passed = 0
    closed_after: float | None = None
    while time.monotonic() - began < SETTLE_SECONDS:
        started = time.monotonic()
        if _reach(question["target"], PORT):
            closed_after = started - began
            break
        passed += 1
        time.sleep(0.5)
    places = {
        name: _until_fine(partial(_reach, host, port)) for name, (host, port) in question["places"].items()
    }
    return {
        "passed": passed,
        "closed_after": closed_after,
        "dns": _until_fine(lambda: _resolve(question["name"])),
        "places": places,
    }


def services(question: Json) -> Json:
    """Store and registry with the Secrets that pods get, and the name service."""
    from argo_harbor.doctor.services import try_registry, try_store

    return {
        "store": try_store(question),
        "registry": try_registry(question),
        "dns": _until_fine(lambda: _resolve(question["name"])),
    }


def sidecar(question: Json) -> Json:
    """Whether the container beside this one is up before it."""
    return {"error": _reach("127.0.0.1", int(question["port"]))}


PROBES: dict[str, Callable[[Json], Json]] = {
    probe.__name__: probe for probe in (serve, connect, fenced, services, sidecar)
}


def main(arguments: list[str]) -> int:
    """Run one probe and leave its answer; whatever goes wrong is an answer too."""
    name, question = arguments[0], json.loads(arguments[1]) if len(arguments) > 1 else {}
    try:
        answer = PROBES[name](question)
    except Exception as error:
        answer = {"crash": f"{type(error).__name__}: {error}"[:_ERROR_CHARS]}
    Path(os.environ.get("ARGO_HARBOR_ANSWER", ANSWER_PATH)).write_text(json.dumps(answer))
    return 1 if "crash" in answer else 0


def _until_fine(attempt: Callable[[], str]) -> str:
    """The error that stays when an attempt was repeated while a fence settles; empty when it works."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while error := attempt():
        if time.monotonic() > deadline:
            return error
        time.sleep(0.5)
    return ""


def _reach(host: str, port: int) -> str:
    """Open a connection and close it. The error in words, empty when it works."""
    try:
        with socket.create_connection((host, port), timeout=CONNECT_SECONDS):
            return ""
    except OSError as error:
        return f"{host}:{port}: {error}"[:_ERROR_CHARS]


def _resolve(name: str) -> str:
    try:
        socket.getaddrinfo(name, 443)
    except OSError as error:
        return f"{name}: {error}"[:_ERROR_CHARS]
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
