"""The runner as an engine starts it, over a store that a test fills."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from argo_harbor.engines.publish import publish
from argo_harbor.engines.scratch import run_scratch
from argo_harbor.model.plan import PlanHead, RunPlan
from argo_harbor.model.record import TrialRecord
from argo_harbor.model.runner import RunnerSettings, SandboxSettings
from argo_harbor.model.spec import RunSpec
from argo_harbor.planning.plan import plan
from argo_harbor.sources.read import load_taskset
from argo_harbor.store import layout
from argo_harbor.store.directory import DirectoryStore


@dataclass
class Desk:
    """One run whose tries a test starts by itself."""

    folder: Path
    scratch: Path
    run: str = field(default_factory=lambda: f"run-{secrets.token_hex(8)}")
    digest: str = ""

    @property
    def store(self) -> DirectoryStore:
        return DirectoryStore(self.folder / "store")

    @property
    def settings(self) -> Path:
        settings = RunnerSettings(
            store=str(self.store.root), sandbox=SandboxSettings(run_scratch=str(self.scratch))
        )
        path = self.folder / "settings.json"
        path.write_bytes(settings.canonical())
        return path

    def plan(self, suite: Path, agent: str = "oracle", *, infra_retries: int = 1) -> RunPlan:
        taskset = load_taskset(suite)
        made = plan(taskset, RunSpec.for_agent(agent))
        head = PlanHead.from_data(made.head.as_data() | {"infra_retries": infra_retries})
        changed = RunPlan(head, made.parts)
        publish(changed, taskset, self.store)
        self.digest = changed.digest
        return changed

    def arguments(self, mode: str, *, try_: int = 0, uid: str = "a" * 32, task: int = 0) -> list[str]:
        arguments = [mode, "--plan", self.digest, "--run", self.run, "--task", str(task), "--attempt", "0"]
        return [*arguments, "--try", str(try_), "--uid", uid, "--settings", str(self.settings)]

    def start(
        self, mode: str, *more: str, try_: int = 0, uid: str = "a" * 32
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "argo_harbor.runner", *self.arguments(mode, try_=try_, uid=uid), *more],
            input=json.dumps({"target": {}, "verifier": {}}),
            capture_output=True,
            text=True,
            env=os.environ,
            check=False,
        )

    def key(self, file: str, *, try_: int = 0, uid: str = "a" * 32) -> str:
        return layout.try_folder(self.run, 0, 0, try_, uid) + file

    def record(self, *, try_: int = 0, uid: str = "a" * 32) -> TrialRecord:
        return TrialRecord.from_json(self.store.get(self.key(layout.TRIAL, try_=try_, uid=uid)))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with run_scratch(f"run-{secrets.token_hex(8)}", tmp_path / "scratch") as scratch:
        yield Desk(tmp_path, scratch)
