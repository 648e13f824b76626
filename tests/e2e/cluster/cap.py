"""Looks, all the while a run lasts, at how many of its trials and builds are there at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from argo_harbor.cluster.connect import connect
from argo_harbor.cluster.paths import core
from argo_harbor.workflow.names import RUN_LABEL, TASK_LABEL, WORKFLOW_LABEL
from tests.e2e.cluster.remote import Remote

_SECONDS = 0.5


@dataclass
class Sampled:
    """What was seen so far."""

    most: int = 0
    looks: int = 0


@contextmanager
def sampling(remote: Remote, run_id: str) -> Iterator[Sampled]:
    """Count the run's unfinished pods of tasks, of its parts too, twice a second until the block ends."""
    sampled = Sampled()
    over = threading.Event()
    api = connect(remote.cluster.context, remote.cluster.namespace)

    def look() -> None:
        while not over.wait(_SECONDS):
            pods = api.list(core(remote.cluster.namespace, "pods"), labels=TASK_LABEL)
            active = [
                pod
                for pod in pods
                if run_id in (pod["metadata"]["labels"].get(key) for key in (RUN_LABEL, WORKFLOW_LABEL))
                and pod["status"].get("phase") in ("Pending", "Running")
            ]
            sampled.most = max(sampled.most, len(active))
            sampled.looks += 1

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield sampled
    finally:
        over.set()
        thread.join()
