"""The stand-ins for OpenSandbox's execd and egress (sources: ``tests/cluster/standins``), for the cluster's
images and for the contract tests.

``python -m tests.support.standins`` compiles them and prints where they are.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from tests.support import gotools
from tests.support.gotools import REPOSITORY, GoTool

SOURCE = REPOSITORY / "tests" / "cluster" / "standins"
BOOTSTRAP = SOURCE / "bootstrap.sh"


def _standin(name: str) -> GoTool:
    return GoTool(
        name=name, folder="standins", module="argo-harbor.test/standins", package=f"cmd/{name}", source=SOURCE
    )


EXECD = _standin("execd")
EGRESS = _standin("egress")


class Standins(NamedTuple):
    """Static programs; ``egress`` runs the program ``nft``."""

    execd: Path
    egress: Path


def build(*, say: gotools.Say) -> Standins:
    """Return the finished programs, compiling what the cache does not hold for these sources.

    Raises:
        ToolUnavailable: they have to be compiled, and there is no Go or one too old.
        ToolBuildFailed: fetching what they need or compiling failed.
    """
    return Standins(execd=gotools.build(EXECD, say=say), egress=gotools.build(EGRESS, say=say))


if __name__ == "__main__":
    for program in build(say=lambda text: print(text, file=sys.stderr)):
        print(program)
