"""The real command line against the real cluster, and what the tests ask about a run besides."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.cluster import Cluster
from tests.support.program import Done, Program

WORKFLOW_LABEL = "workflows.argoproj.io/workflow"
KINDS = ("pods", "networkpolicies", "secrets", "configmaps", "workflows", "workflowtaskresults")
"""What a run could leave behind in its namespace."""


@dataclass(frozen=True)
class Remote:
    """A user of the cluster: every command finds it by KUBECONFIG alone."""

    cluster: Cluster
    program: Program

    def __call__(
        self, *arguments: object, env: Mapping[str, str] | None = None, timeout: float = 600
    ) -> Done:
        return self.program(*arguments, env={**self.cluster.environment, **(env or {})}, timeout=timeout)

    def submit(self, suite: Path, *flags: object, agent: str = "oracle") -> str:
        """Submit a suite and return the run's id at once."""
        done = self("runs", "submit", "--harbor-dir", suite, "--agent", agent, *flags, "--json")
        assert done.status == 0, done.stderr
        run_id: str = done.json("run-document-1")["run"]["id"]
        return run_id

    def run(self, suite: Path, *flags: object, agent: str = "oracle", timeout: float = 900) -> str:
        """Submit a suite, wait for its merged results and return the run's id."""
        run_id = self.submit(suite, *flags, agent=agent)
        self.ended(run_id, timeout=timeout)
        return run_id

    def ended(self, run_id: str, *, timeout: float = 900) -> dict[str, Any]:
        """Wait until the run is over and its Workflow too, and return `runs status`."""
        done = self("runs", "status", run_id, "--wait", "--json", timeout=timeout)
        document = done.json("run-document-1")
        self.until(lambda: self.workflow(run_id).get("status", {}).get("finishedAt"), what=f"{run_id} to end")
        return document

    def tasks(self, run_id: str) -> dict[str, dict[str, Any]]:
        """`runs tasks` by the last part of the task's name."""
        lines = self("runs", "tasks", run_id, "--json").json("tasks-document-1")["tasks"]
        return {line["name"].rpartition("/")[2]: line for line in lines}

    def trial(self, run_id: str, task: str) -> dict[str, Any]:
        """The only trial of a task, as `runs tasks` shows it."""
        (trial,) = self.tasks(run_id)[task]["trials"]
        assert isinstance(trial, dict)
        return trial

    def records(self, run_id: str, folder: Path, task: str) -> list[dict[str, Any]]:
        """The `trial.json` of every try of one task, downloaded as a user does."""
        index = self.tasks(run_id)[task]["index"]
        done = self("runs", "download", run_id, "--task", index, "-o", folder / run_id / str(index), "--json")
        path = Path(done.json("download-document-1")["path"])
        return [json.loads(each.read_bytes()) for each in sorted(path.rglob("trial.json"))]

    def workflow(self, run_id: str) -> dict[str, Any]:
        return self.cluster.get("workflow", run_id, "--namespace", self.cluster.namespace)

    def pods(self, run_id: str) -> list[dict[str, Any]]:
        return self._of(run_id, "pods")

    def left_of(self, run_id: str) -> list[str]:
        """Everything in the namespace that names the run."""
        listed = self.cluster.get(",".join(KINDS), "--namespace", self.cluster.namespace)["items"]
        return [
            f"{each['kind']}/{each['metadata']['name']}"
            for each in listed
            if each["metadata"]["name"].startswith(run_id)
            or each["metadata"].get("labels", {}).get(WORKFLOW_LABEL) == run_id
        ]

    def delete(self, run_id: str) -> None:
        """Delete the Workflow and wait until nothing of the run is left, which is what must happen."""
        self.cluster.kubectl(
            "delete", "workflow", run_id, "--namespace", self.cluster.namespace, "--ignore-not-found"
        )
        self.until(lambda: not self.left_of(run_id), what=f"everything of {run_id} to go")

    def until(self, holds: Callable[[], object], *, what: str, seconds: float = 120) -> Any:
        """Ask until the answer is a yes, and return it. What is asked is the cluster itself, which has no
        one event for it."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if answer := holds():
                return answer
            time.sleep(0.5)
        raise AssertionError(f"waited {seconds:.0f} s for {what}")

    def _of(self, run_id: str, kind: str) -> list[dict[str, Any]]:
        found = self.cluster.get(
            kind, "--namespace", self.cluster.namespace, "--selector", f"{WORKFLOW_LABEL}={run_id}"
        )
        items: list[dict[str, Any]] = found["items"]
        return items


def runs_made(remote: Remote) -> Iterator[str]:
    """Names of all Workflows in the namespace."""
    for each in remote.cluster.get("workflows", "--namespace", remote.cluster.namespace)["items"]:
        yield each["metadata"]["name"]
