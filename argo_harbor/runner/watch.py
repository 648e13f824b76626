"""`python -m argo_harbor.runner watch`: ends pods of a run that will never start, until the run is over.

Runs in a pod beside the run's Workflow, which owns it; see `workflow.watch` for why. Whatever it cannot ask
or do it tries again at the next look: the worst that happens without it is that a pod keeps its place until
its deadline.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence

from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.connect import connect_in_pod
from argo_harbor.cluster.errors import ClusterError
from argo_harbor.cluster.starts import Starts, end_pod, is_over, pending_pods
from argo_harbor.errors import EXIT_OK
from argo_harbor.runner.clock import say
from argo_harbor.runner.exits import run_command
from argo_harbor.workflow import names

LOOK_SECONDS = 5.0


def main(arguments: Sequence[str]) -> int:
    """The exit status: 0 when the run is over."""
    parser = argparse.ArgumentParser(prog="python -m argo_harbor.runner watch", description=__doc__)
    parser.add_argument("--run", required=True)
    parser.add_argument("--start-seconds", required=True, type=float)
    parser.add_argument("--login", action="append", default=[], help="Secret that the pods pull with")
    given = parser.parse_args(arguments)
    starts = Starts(start_seconds=given.start_seconds, logins=given.login)
    return run_command(lambda: watch(given.run, connect_in_pod(os.environ[names.NAMESPACE_ENV]), starts))


def watch(run: str, cluster: Cluster, starts: Starts, *, sleep: Callable[[float], None] = time.sleep) -> int:
    """Look every few seconds until the run's Workflow is over."""
    while True:
        try:
            if is_over(cluster, run):
                return EXIT_OK
            for pod, cause in starts.hopeless(pending_pods(cluster, run), time.monotonic()):
                end_pod(cluster, pod, cause)
                say(f"ended {pod.name}: {cause.code}: {cause.message}")
        except ClusterError as error:
            say(f"not looked: {error.message}")
        sleep(LOOK_SECONDS)
