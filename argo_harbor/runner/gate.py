"""`python -m argo_harbor.runner gate`: says whether the rest of a run follows its canary tasks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from argo_harbor.bundle.canary import read_canary
from argo_harbor.bundle.collect import Collector
from argo_harbor.bundle.plans import read_head
from argo_harbor.errors import EXIT_FAILED, EXIT_OK
from argo_harbor.runner.exits import run_command
from argo_harbor.runner.pod import Pod, claim_run, read_pod


def main(arguments: Sequence[str]) -> int:
    """The exit status: 0 when the rest may run, 1 when it must not, 75 to try again."""
    parser = argparse.ArgumentParser(prog="python -m argo_harbor.runner gate", description=__doc__)
    parser.add_argument("--plan", required=True, help="digest of the plan, 64 hex")
    parser.add_argument("--run", required=True)
    given = parser.parse_args(arguments)
    return run_command(lambda: decide(given.plan, given.run, read_pod()))


def decide(plan: str, run: str, pod: Pod) -> int:
    """Print the decision and why. Raises PlatformError."""
    store = pod.store()
    claim_run(store, run, pod.workflow_uid)
    head = read_head(plan, store)
    reasons = read_canary(Collector(run, store, head, plan), head.canary)
    count = f"{len(head.canary)} canary {'task' if len(head.canary) == 1 else 'tasks'}"
    if not reasons:
        print(f"{count}: nothing that the others would meet as well; the rest of the run starts")
        return EXIT_OK
    print(f"{count}: the rest of the run does not start, since the same would meet it")
    for reason in reasons:
        print(f"  {reason}")
    return EXIT_FAILED
