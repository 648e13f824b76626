"""An argo engine before an API server in the test's process, with a folder as its store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from argo_harbor.engines import events
from argo_harbor.engines.argo import ArgoEngine
from argo_harbor.engines.base import SubmitOptions
from argo_harbor.engines.place import Place
from argo_harbor.engines.where import choose
from argo_harbor.model.plan import RunPlan
from argo_harbor.model.spec import RunSpec
from argo_harbor.model.taskset import Taskset
from argo_harbor.planning.plan import plan
from argo_harbor.sources.read import load_taskset
from argo_harbor.store.directory import DirectoryStore
from argo_harbor.workflow import names
from tests.support.api_server import ApiServer
from tests.support.program import EXAMPLES
from tests.support.records import Run

CORE = "/api/v1/namespaces/argo-harbor"
WORKFLOWS = "/apis/argoproj.io/v1alpha1/namespaces/argo-harbor/workflows"
ACCOUNTS = ("trial", "build", "executor", "network", "merge", "shard", "watch")


NOBODY = "127.0.0.1:9"
"""Where nobody listens."""


def install(api: ApiServer, *, registry: str = NOBODY, platform: str = "") -> None:
    """What `argo-harbor install` leaves in a cluster, as far as users see it."""
    text = (
        f'registry = "{registry}/x"\nbase_image_mirror = "{registry}/mirror"\n'
        f'insecure_registries = ["{registry}"]\n[store]\nendpoint = "http://{NOBODY}"\n{platform}\n'
    )
    api.put(f"{CORE}/configmaps/argo-harbor-platform", {"data": {"platform.toml": text}})
    profiles = {"harbor-standard.toml": 'hosts = ["@public"]', "closed.toml": ""}
    api.put(f"{CORE}/configmaps/argo-harbor-profiles", {"data": profiles})
    keys = {"access_key": "YQ==", "secret_key": "Yg=="}
    api.put(f"{CORE}/secrets/argo-harbor-store", {"data": keys})
    for account in ACCOUNTS:
        api.put(f"{CORE}/serviceaccounts/argo-harbor-{account}", {})


@dataclass
class ArgoBench:
    """Plans of example suites, and the engine to run them."""

    api: ApiServer
    folder: Path
    suite: Path = EXAMPLES / "hello-world"

    @cached_property
    def engine(self) -> ArgoEngine:
        chosen = choose(Place(engine="argo"))
        assert chosen.cluster is not None
        return ArgoEngine(chosen.cluster, chosen.site, environ={}, store=self.store)

    @cached_property
    def store(self) -> DirectoryStore:
        """A folder stands in for the object store: what differs between the two is the stores' own tests'."""
        return DirectoryStore(self.folder / "store")

    @cached_property
    def taskset(self) -> Taskset:
        return load_taskset(self.suite)

    def plan(self, agent: str = "oracle", **spec: Any) -> RunPlan:
        request = spec.pop("request", None) or RunSpec.for_agent(agent, **spec)
        site = self.engine.site
        return plan(self.taskset, request, platform=site.platform, profile=site.profile())

    def submit(
        self,
        planned: RunPlan | None = None,
        *,
        key: str = "",
        environ: Mapping[str, str] | None = None,
    ) -> tuple[str, list[events.Event]]:
        seen: list[events.Event] = []
        options = SubmitOptions(idempotency_key=key, environ=environ or {}, request={"rerun": "again"})
        run_id = self.engine.submit(
            planned or self.plan(), self.taskset, options=options, progress=seen.append
        )
        return run_id, seen

    def says(self, run_id: str, phase: str, *, shutdown: str = "", **status: Any) -> None:
        """Let the controller say something of a run."""
        workflow = self.api.workflow(run_id)
        workflow["status"] = {"phase": phase, **status}
        if shutdown:
            workflow["spec"]["shutdown"] = shutdown
        if phase in ("Succeeded", "Failed", "Error"):
            workflow["metadata"]["labels"][names.COMPLETED_LABEL] = "true"

    def forget(self, run_id: str) -> None:
        """Let the Workflow be deleted, as its time to live does."""
        del self.api.objects[f"{WORKFLOWS}/{run_id}"]

    def trials(self, run_id: str, planned: RunPlan) -> Run:
        """Tries of the run, to be added to the store."""
        return Run(self.store, planned.head, run_id, [entry.name for entry in planned.head.tasks])
