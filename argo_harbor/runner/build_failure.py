"""Says why a build failed, out of BuildKit's steps and its client's last words. Pure.

What a Dockerfile's own commands do is final: the next try would do the same. Of pulls and pushes it is told
apart who refused what, since a missing image or a login that is not taken will not get better either, but a
network will.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from argo_harbor.registry.reference import DOCKER_HUB, parse_image
from argo_harbor.runner.build_progress import Step

_PULL = re.compile(
    r"\[internal\] load metadata for (?P<image>\S+)|(?:\[.*\] )?FROM (?P<base>\S+)|resolve image config for "
    r"(?:docker-image://)?(?P<frontend>\S+)|docker-image://(?P<source>\S+)"
)
# No step has the push's error: only the client's last line does.
_PUSH = re.compile(r"failed to push (?P<image>\S+): (?P<error>.+)")
_PLACE = re.compile(r"^(?P<file>\S*Dockerfile:\d+)$", re.MULTILINE)
_MARKED = re.compile(r"^ *\d+ \| >>> (?P<text>.*)$", re.MULTILINE)
_CACHE = re.compile(r"(?:importing cache manifest|exporting cache)")
_CANCELLED = re.compile(r"context canceled|Canceled: ", re.IGNORECASE)
_UNAUTHORIZED = re.compile(
    r"\b40[13]\b|unauthorized|authorization failed|failed to authorize|insufficient_scope|access denied|"
    r"\bdenied: |no basic auth credentials|authentication required|forbidden",
    re.IGNORECASE,
)
_NOT_FOUND = re.compile(r"not found|manifest unknown|name unknown|no match for platform", re.IGNORECASE)
_NETWORK = re.compile(
    r"dial tcp|connection refused|connection reset|broken pipe|i/o timeout|TLS handshake timeout|"
    r"no such host|server misbehaving|network is unreachable|no route to host|temporary failure|\bEOF\b|"
    r": 50[0234] |: 429 |too many requests|deadline exceeded",
    re.IGNORECASE,
)
# The client's words when the daemon is gone: killed for memory, or never up.
_DAEMON = re.compile(r"code = Unavailable|connection error|closing transport|listing workers|socket|\bEOF\b")


_MAX_STEP = 1000


class BuildFailure(NamedTuple):
    """Why one build failed."""

    code: str
    """One of `BUILD_ERRORS`."""
    step: str
    message: str
    """The last lines of output."""
    again: bool = False
    """Whether another try may succeed."""
    pushed: bool = False
    """True when it was the push that failed."""
    registry: str = ""
    image: str = ""


def explain(failed: Sequence[Step], said: str, *, reference: str, mirror: str = "") -> BuildFailure:
    """`failed` are the steps with an error, in order of their ends; `said` is what else the client wrote.

    `reference` is the image that was to be pushed, `mirror` what stands in for Docker Hub.
    """
    if push := _PUSH.search(said):
        return _of_transfer("push", push["error"], reference, "", pushed=True)
    where = _instruction(said)
    for step in failed:
        if _CANCELLED.search(step.error) or _CACHE.match(step.name):
            continue
        if pull := _PULL.match(step.name):
            image = next(name for name in pull.groups() if name).removeprefix("docker-image://")
            return _of_transfer(where or step.name, step.error, image, mirror, pushed=False)
        output = "\n".join(filter(None, (*step.tail, step.error)))
        return BuildFailure("image_build_failed", where or step.name, output)
    again = bool(_DAEMON.search(said)) and not where
    last = said.strip().rpartition("\n")[2] if where else said.strip()
    return BuildFailure("image_build_failed", where, last or "BuildKit gave no reason", again)


def _instruction(said: str) -> str:
    """The failing instruction as the client marks it: `Dockerfile:2: RUN false`; empty when it does not."""
    place, marked = _PLACE.search(said), [line.strip() for line in _MARKED.findall(said)]
    return f"{place['file']}: {' '.join(marked)}"[:_MAX_STEP] if place and marked else ""


def _of_transfer(step: str, error: str, image: str, mirror: str, *, pushed: bool) -> BuildFailure:
    try:
        name = parse_image(image)
        registry = mirror.partition("/")[0] if mirror and name.registry == DOCKER_HUB else name.registry
        full = str(name)
    except ValueError:
        registry, full = "", image
    code, again = "image_build_failed", False
    # In this order: a server of tokens that does not answer ends in "failed to authorize", and a refusal says
    # "does not exist" as well.
    if _NETWORK.search(error):
        code, again = "registry_unreachable", True
    elif _UNAUTHORIZED.search(error):
        code = "registry_unauthorized"
    elif not pushed and _NOT_FOUND.search(error):
        code = "base_image_not_found"
    return BuildFailure(code, step, error, again, pushed, registry, full)
