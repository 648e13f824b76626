"""One planned and published task with a Dockerfile, and the build command run on it outside of a pod."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argo_harbor.bundle.images import ImageState, image_states
from argo_harbor.engines.publish import publish
from argo_harbor.model.build import BuildInputs, BuildRecord
from argo_harbor.model.plan import ImagePlan, RunPlan
from argo_harbor.model.platform import Platform
from argo_harbor.model.spec import RunSpec
from argo_harbor.planning.plan import plan
from argo_harbor.runner.build import Arguments, open_build
from argo_harbor.runner.process import Interrupt
from argo_harbor.sources.read import load_taskset
from argo_harbor.store import layout
from argo_harbor.store.directory import DirectoryStore
from argo_harbor.workflow import names
from tests.support.pods import make_pod, store_root
from tests.support.suites import make_suite

RUN = "run-1"
UID = "feedc0de-0000-4000-8000-000000000001"


@dataclass
class Built:
    """What a build step finds, and what it leaves."""

    root: Path
    plan: RunPlan
    store: DirectoryStore
    interrupt: Interrupt = field(default_factory=Interrupt)

    @property
    def image(self) -> ImagePlan:
        return self.plan.parts[0].images.agent

    @property
    def tag(self) -> str:
        return self.image.reference.partition("/")[2]

    def build(self, **client: str) -> int:
        """The exit status. `client` says which client to use, and at which address its daemon is."""
        return self.started(Arguments(0, plan=self.plan.digest, run=RUN), **client)

    def started(self, given: Arguments, **client: str) -> int:
        return open_build(
            given,
            make_pod(self.root, uid=UID),
            self.interrupt,
            logins=self.root / "secrets",
            secrets=self.root / "build-secrets",
            **client,
        ).run()

    def secret(self, name: str, host: str, user: str = "robot", password: str = "pw") -> None:
        folder = self.root / "secrets" / name
        folder.mkdir(parents=True, exist_ok=True)
        auth = base64.b64encode(f"{user}:{password}".encode()).decode()
        (folder / "config.json").write_text(json.dumps({"auths": {host: {"auth": auth}}}))

    def build_secret(self, identity: str, value: str) -> None:
        folder = self.root / "build-secrets" / identity
        folder.mkdir(parents=True, exist_ok=True)
        (folder / names.BUILD_SECRET_FILE).write_text(value)

    @property
    def state(self) -> ImageState:
        return image_states(self.store, [self.image.key])[self.image.key]

    @property
    def record(self) -> BuildRecord:
        key = layout.build_record(RUN, self.image.key, UID)
        return BuildRecord.from_json(self.store.get(key))


def make_build(
    root: Path,
    registry: str,
    *,
    prefix: str = "team",
    dockerfile: str = "",
    inputs: BuildInputs | None = None,
    **platform: Any,
) -> Built:
    """A task below `root` whose image belongs to the registry `registry`, which speaks plain HTTP."""
    suite = make_suite(root / "suite", tasks=1)
    if dockerfile:
        (suite / "task-0000" / "environment" / "Dockerfile").write_text(dockerfile)
    taskset = load_taskset(suite)
    settings = {"insecure_registries": [registry], "default_sandbox_profile": "closed", **platform}
    spec = RunSpec.for_agent("oracle")
    execution = spec.execution.model_copy(update={"build": inputs or BuildInputs()})
    planned = plan(
        taskset,
        spec.model_copy(update={"execution": execution}),
        platform=Platform.from_data({"registry": f"{registry}/{prefix}", **settings}),
    )
    store = DirectoryStore(store_root(root))
    publish(planned, taskset, store)
    return Built(root, planned, store)
