"""The images that the cluster's tests run on, made on this machine and pushed to its registry.

``python -m tests.cluster.images [--only NAME]`` does the same by hand: after a change of the program the
runner's image is there again in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.cluster.images.pause import PAUSE
from tests.cluster.images.shelf import Shelf, Tools
from tests.support import gotools


def push_all(*, registry: str, tools: Tools, say: gotools.Say, only: Iterable[str] = ()) -> dict[str, str]:
    """Build and push the images that the registry lacks. Returns references by short name.

    ``registry`` is HOST:PORT, without TLS. ``tools`` gives the finished program for each of ``execd``,
    ``bootstrap.sh``, ``egress``, ``buildkitd``, ``buildctl``, ``argoexec`` and ``coredns``; only those of the
    wanted images are asked for. ``only`` names these.

    Raises:
        ClusterError: no Debian can be made here, buildah said no, or the registry does not answer.
    """
    shelf = Shelf(registry=registry, tools=with_pause(tools, say), say=say)
    with shelf.locked():
        return {name: shelf.push(name) for name in only or shelf.names()}


def with_pause(tools: Tools, say: gotools.Say) -> Tools:
    """Also the one program that belongs to the images themselves."""

    def find(name: str) -> Path:
        return gotools.build(PAUSE, say=say) if name == PAUSE.name else tools(name)

    return find
