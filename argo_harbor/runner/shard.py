"""`python -m argo_harbor.runner shard`: runs one part of a run that is too large for one Workflow.

Creates the part from the plan's `parts/` in the store and follows it to its end, so that the next part starts
only then and the run's cap holds. A repeated step finds the part by its name. Parts end when the parent is
stopped; a step that merely lost its node leaves its part running for the next try.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import yaml

from argo_harbor.cluster.causes import ended_by
from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.connect import connect_in_pod
from argo_harbor.cluster.errors import ClusterError, NotFound, Unreachable
from argo_harbor.cluster.parts import find_or_create, part_name, part_object
from argo_harbor.cluster.workflows import Workflow, find_workflow, parts_of, stop_workflow
from argo_harbor.errors import EXIT_OK, PlatformError
from argo_harbor.runner.clock import say
from argo_harbor.runner.exits import Again, run_command
from argo_harbor.runner.pod import Pod, claim_run, read_pod
from argo_harbor.runner.process import Interrupt
from argo_harbor.store import layout
from argo_harbor.store.base import KeyNotFound, Store
from argo_harbor.workflow import names

LOOK_SECONDS = 5.0
SILENCE_SECONDS = 1800.0
"""How long the API server may be away before the step gives up and asks for another try."""
# A part is about a megabyte of YAML, which takes the parser in Python many seconds.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def main(arguments: Sequence[str]) -> int:
    """The exit status: 0 when the part has ended, whatever became of it; 75 to try again."""
    parser = argparse.ArgumentParser(prog="python -m argo_harbor.runner shard", description=__doc__)
    parser.add_argument("--plan", required=True, help="digest of the plan, 64 hex")
    parser.add_argument("--run", required=True)
    parser.add_argument("--part", required=True, type=int)
    parser.add_argument("--try", required=True, type=int, dest="try_")
    given = parser.parse_args(arguments)
    interrupt = Interrupt()
    interrupt.listen()

    def run() -> int:
        pod = read_pod()
        shard = Shard(given.plan, given.run, given.part, pod, connect_in_pod(pod.namespace), interrupt)
        return shard.run()

    return run_command(run)


class Shard:
    """One part of a run."""

    def __init__(
        self,
        plan: str,
        run: str,
        number: int,
        pod: Pod,
        cluster: Cluster,
        interrupt: Interrupt,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._plan = plan
        self._run = run
        self._number = number
        self._pod = pod
        self._cluster = cluster
        self._interrupt = interrupt
        self._sleep = sleep
        self._told = ""

    def run(self) -> int:
        """Create the part unless it is there, and follow it. Returns the exit status.

        Raises: PlatformError; Again when the API server does not answer, or the step was told to end.
        """
        store = self._pod.store()
        claim_run(store, self._run, self._pod.workflow_uid)
        part = read_part(self._plan, self._number, store)
        name = part_name(self._run, self._number, part)
        body = part_object(
            part,
            name=name,
            run=self._run,
            parent_uid=self._pod.workflow_uid,
            namespace=self._pod.namespace,
        )
        try:
            for earlier in parts_of(self._cluster, self._run):
                # The step that followed it was lost for good: two parts at once would pass the run's cap.
                if earlier.name != name and not earlier.over:
                    self._say(f"waiting for {earlier.name}")
                    self._follow(earlier)
            return self._follow(find_or_create(self._cluster, body))
        except ClusterError as error:
            if self._interrupt.asked:
                self._end(name)
            if isinstance(error, Unreachable):
                raise Again(error.message) from error
            raise PlatformError(
                "platform_unreachable", f"part {self._number:03} cannot be run: {error.message}"
            ) from error

    def _follow(self, workflow: Workflow) -> int:
        silent_since = time.monotonic()
        while True:
            self._tell(workflow)
            if workflow.over:
                return EXIT_OK
            if self._interrupt.asked:
                self._end(workflow.name)
            self._sleep(LOOK_SECONDS)
            try:
                found = find_workflow(self._cluster, workflow.name)
                silent_since = time.monotonic()
            except Unreachable as error:
                self._say(f"no answer: {error.message}")
                if time.monotonic() - silent_since > SILENCE_SECONDS:
                    raise
                continue
            if found is None:
                self._say("it was deleted")
                return EXIT_OK
            workflow = found

    def _end(self, name: str) -> None:
        """What SIGTERM asks for. Always raises Again: Argo does not repeat a step that it stopped."""
        try:
            parent = find_workflow(self._cluster, self._run)
            if parent is None or ended_by(parent, datetime.now(UTC)) is not None:
                stop_workflow(self._cluster, name)
                self._say("stopped, since the run was")
        except NotFound:
            pass  # it is not there, so that it needs no stop
        except ClusterError as error:
            raise Again(f"told to end, and the API server does not answer: {error.message}") from error
        raise Again("told to end")

    def _tell(self, workflow: Workflow) -> None:
        status = workflow.data.get("status")
        progress = str(status.get("progress") or "") if isinstance(status, dict) else ""
        text = " ".join(filter(None, (workflow.phase or "Accepted", progress, workflow.message)))
        if text != self._told:
            self._told = text
            self._say(f"{workflow.name}: {text}")

    def _say(self, text: str) -> None:
        say(f"part {self._number:03}: {text}")


def read_part(plan: str, number: int, store: Store) -> dict[str, Any]:
    """The part as it was compiled. Raises PlatformError `plan_unreadable` for anything but a part of this
    plan."""
    key = layout.plan_part(plan, number)
    try:
        part = yaml.load(store.get(key), Loader=_LOADER)  # a safe loader
        whole = part["kind"] == "Workflow" and part["metadata"]["annotations"][names.PLAN_LABEL] == plan
        fitting = whole and isinstance(part["spec"]["templates"], list)
    except KeyNotFound as error:
        raise PlatformError(
            "plan_unreadable", f"{key} is not in {store.name}", "publish the plan again"
        ) from error
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise PlatformError("plan_unreadable", f"{key} is no Workflow", "publish the plan again") from error
    if not fitting:
        raise PlatformError("plan_unreadable", f"{key} is no part of this plan", "publish the plan again")
    return dict(part)
