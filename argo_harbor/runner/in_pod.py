"""One try as the main container of a trial pod."""

from __future__ import annotations

from argo_harbor.runner.bench import Bench
from argo_harbor.runner.command import Command
from argo_harbor.runner.dispatch import run_try
from argo_harbor.runner.exits import run_command
from argo_harbor.runner.harbor_process import HarborProcess
from argo_harbor.runner.pod import read_pod
from argo_harbor.runner.pod_place import PodPlace
from argo_harbor.runner.process import Interrupt, began


def run(command: Command, child: HarborProcess, interrupt: Interrupt) -> int:
    """The exit status, as Argo's retry strategy understands it."""

    def work() -> int:
        pod = read_pod()
        return run_try(Bench(command, pod.store(), PodPlace(pod, began()), interrupt, child))

    return run_command(work)
