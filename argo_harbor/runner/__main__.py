"""`python -m argo_harbor.runner`: what runs in pods, and one try for the engine of one machine.

Engines and workflows start it, people do not. In a pod the time until Harbor is imported is the trial's, so
this module imports little before that has begun.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from argo_harbor.runner.command import parse
from argo_harbor.runner.harbor_process import harbor_process
from argo_harbor.runner.process import Interrupt
from argo_harbor.workflow.names import WORK_PATH

OTHER_COMMANDS = ("build", "gate", "shard", "merge", "watch")
"""Commands of pods that run no trial; each has a module of its name with a `main`."""


def main(arguments: Sequence[str]) -> int:
    """The exit status: 0 when the attempt is decided, 75 to try again, else an error's own."""
    if arguments and arguments[0] in OTHER_COMMANDS:
        other: Callable[[Sequence[str]], int] = importlib.import_module(
            f"argo_harbor.runner.{arguments[0]}"
        ).main
        return other(arguments[1:])
    command = parse(arguments, os.environ)
    interrupt = Interrupt()
    interrupt.listen()
    if command.settings is None:
        with harbor_process(Path(WORK_PATH), command.work_name) as child:
            from argo_harbor.runner import in_pod

            return in_pod.run(command, child, interrupt)
    from argo_harbor.runner import on_machine

    return on_machine.run(command, command.settings, interrupt)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
