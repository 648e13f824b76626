"""`python -m argo_harbor.runner merge`: the exit handler, which turns a run's records into its bundle.

Argo starts it once, whatever became of the run, and never again: it repeats itself. Without the API server it
merges from the store and says that causes are unknown. `runs merge` does the same from outside.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

from argo_harbor.bundle.merge import MergeResult, merge
from argo_harbor.bundle.plans import read_head
from argo_harbor.bundle.settle import SECONDS, wait_for_tries
from argo_harbor.cluster.causes import read_causes
from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.connect import connect_in_pod
from argo_harbor.cluster.errors import ClusterError
from argo_harbor.cluster.pods import list_pods
from argo_harbor.errors import EXIT_OK, PlatformError
from argo_harbor.model.bundle import METRIC, REPORT_FILE, SUMMARY_FILE, Summary
from argo_harbor.model.causes import Cause, Causes
from argo_harbor.model.plan import PlanHead
from argo_harbor.runner.clock import say
from argo_harbor.runner.exits import run_command
from argo_harbor.runner.pod import Pod, claim_run, read_pod
from argo_harbor.store import layout
from argo_harbor.store.base import Store

PAUSES = (5.0, 20.0)
"""Seconds before the second and the third try."""
_SHOWN = 20
"""Missing tasks; the rest stands in the report."""


def main(arguments: Sequence[str]) -> int:
    """The exit status: 0 whenever a bundle was written."""
    parser = argparse.ArgumentParser(prog="python -m argo_harbor.runner merge", description=__doc__)
    parser.add_argument("--plan", required=True, help="digest of the plan, 64 hex")
    parser.add_argument("--run", required=True)
    given = parser.parse_args(arguments)
    return run_command(lambda: merge_in_pod(given.plan, given.run, read_pod()))


def merge_in_pod(
    plan: str,
    run: str,
    pod: Pod,
    *,
    connect: Callable[[str], Cluster] = connect_in_pod,
    patience: float = SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Wait for what still ends, then merge, up to three times. Raises PlatformError of the last try.

    `patience` is how long, in seconds, tries without a record are waited for.
    """
    store = pod.store()
    cluster = _cluster(pod, connect)

    def once() -> int:
        return _merge(plan, run, pod, store, cluster, patience=patience, sleep=sleep)

    for pause in PAUSES:
        try:
            return once()
        except PlatformError as error:
            if not error.retryable or error.code == "run_id_reused":
                raise
            say(f"{error.code}: {error.message}; once more in {pause:.0f} s")
            sleep(pause)
    return once()


def _merge(
    plan: str,
    run: str,
    pod: Pod,
    store: Store,
    cluster: Cluster | None,
    *,
    patience: float,
    sleep: Callable[[float], None],
) -> int:
    claim_run(store, run, pod.workflow_uid)
    head = read_head(plan, store)
    lost = wait_for_tries(
        run, store, alive=lambda: _alive(cluster, run, pod.uid), seconds=patience, say=say, sleep=sleep
    )
    if lost:
        say(f"{lost} tries left no record")
    causes = _causes(cluster, run, head)
    _tell(merge(run, store, plan=plan, engine="argo", causes=causes), store)
    return EXIT_OK


def _cluster(pod: Pod, connect: Callable[[str], Cluster]) -> Cluster | None:
    try:
        return connect(pod.namespace)
    except PlatformError as error:
        say(f"without the API server: {error.message}")
        return None


def _alive(cluster: Cluster | None, run: str, own: str) -> frozenset[str] | None:
    if cluster is None:
        return None
    try:
        pods = list_pods(cluster, run)
    except ClusterError as error:
        say(f"pods cannot be listed: {error.message}")
        return None
    return frozenset(
        pod.uid.replace("-", "")[:8]
        for pod in pods
        if pod.phase not in ("Succeeded", "Failed") and pod.uid != own
    )


def _causes(cluster: Cluster | None, run: str, head: PlanHead) -> Causes:
    why = "this process has no account there"
    if cluster is not None:
        try:
            return read_causes(cluster, run, head)
        except ClusterError as error:
            why = error.message
    say(f"causes are unknown: {why}")
    return Causes(
        others=Cause("not_started", f"no try of it has started; the API server could not be asked why: {why}")
    )


def _tell(result: MergeResult, store: Store) -> None:
    facts, over = result.facts, result.state
    coverage = facts.coverage
    say(
        f"run {over.run} {over.phase.value}: {coverage.total} trials planned, {coverage.scored} scored, "
        f"{coverage.failed} failed, {coverage.missing} missing"
    )
    summary = Summary.from_json(store.get(result.bundle + SUMMARY_FILE))
    for score in summary.scores.scores:
        if score.name.startswith(METRIC):
            say(f"  {score.name}: {score.mean} (of {score.count})")
    for task in facts.missing[:_SHOWN]:
        first = task.attempts[0]
        say(f"  missing {task.task}: {first.code}: {first.cause.partition(chr(10))[0]}")
    say(f"report: {store.name}/{layout.bundle(over.run, REPORT_FILE)}")
