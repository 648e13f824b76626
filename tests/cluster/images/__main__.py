"""`python -m tests.cluster.images`: build and push what changed, and print how the platform file names it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.cluster import addresses
from tests.cluster.errors import ClusterError
from tests.cluster.images import push_all
from tests.cluster.images.catalogue import catalogue
from tests.cluster.programs import ALL
from tests.support import gotools, standins


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0 when all wanted images are in the registry."""
    names = [name for name, image in catalogue().items() if image.repository]
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.images", description=__doc__)
    parser.add_argument("--registry", metavar="HOST:PORT", default=addresses.REGISTRY)
    parser.add_argument("--only", metavar="NAME", action="append", default=[], choices=names)
    chosen = parser.parse_args(arguments)
    try:
        pushed = push_all(registry=chosen.registry, tools=program, say=_say, only=chosen.only)
    except (ClusterError, gotools.ToolBuildFailed, gotools.ToolUnavailable) as failure:
        print(failure, file=sys.stderr)
        return 1
    for name, reference in pushed.items():
        print(f'{name} = "{reference}"')
    return 0


def program(name: str) -> Path:
    """The finished program of this name, compiled if the cache does not hold it.

    Raises: ToolBuildFailed, ToolUnavailable
    """
    if name == standins.BOOTSTRAP.name:
        return standins.BOOTSTRAP
    tools = {tool.name: tool for tool in (*ALL, standins.EXECD, standins.EGRESS)}
    return gotools.build(tools[name], say=_say)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
