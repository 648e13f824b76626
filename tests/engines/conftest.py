"""Real runs on the local engine, and a look around afterwards."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from argo_harbor.engines import events
from argo_harbor.engines.base import SubmitOptions
from argo_harbor.engines.local import LocalEngine
from argo_harbor.model.plan import RunPlan
from argo_harbor.model.record import TrialRecord
from argo_harbor.model.spec import RunSpec
from argo_harbor.planning.plan import plan
from argo_harbor.sources.read import load_taskset
from argo_harbor.store import layout
from tests.engines.argo_bench import ArgoBench, install
from tests.support.api_server import ApiServer


def records_of(engine: LocalEngine, run_id: str) -> list[TrialRecord]:
    """Every record of a run in the store, of all tries, by key."""
    return [
        TrialRecord.from_json(engine.store.get(entry.key))
        for entry in engine.store.list(layout.trials(run_id))
        if entry.key.endswith("/" + layout.TRIAL)
    ]


@dataclass
class Ran:
    """One run that has ended."""

    engine: LocalEngine
    run_id: str
    events: list[events.Event]
    plan: RunPlan

    def records(self) -> list[TrialRecord]:
        return records_of(self.engine, self.run_id)

    def record(self, task: str) -> TrialRecord:
        (found,) = [record for record in self.records() if record.task_name == task]
        return found

    def text(self, record: TrialRecord, file: str) -> str:
        ref = record.ref
        folder = layout.try_folder(ref.run, ref.index, ref.attempt, ref.try_, ref.uid)
        return self.engine.store.get(folder + file).decode()

    def of(self, kind: type[events.Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


@dataclass
class Bench:
    """Runs suites below one folder."""

    folder: Path
    ran: list[str] = field(default_factory=list)

    @property
    def root(self) -> Path:
        return self.folder / "root"

    def run(
        self,
        suite: Path,
        agent: str = "oracle",
        *,
        options: SubmitOptions | None = None,
        tasks: str | None = None,
        seconds: int = 0,
        **spec: Any,
    ) -> Ran:
        """Run a suite to its merge. `seconds` is the run's budget, `spec` goes to the request."""
        taskset = load_taskset(suite, tasks=tasks)
        request = spec.pop("request", None) or RunSpec.for_agent(agent, **spec)
        planned = plan(taskset, request)
        if seconds:
            limits = planned.head.limits.model_copy(update={"timeout_seconds": seconds})
            planned = RunPlan(planned.head.model_copy(update={"limits": limits}), planned.parts)
        engine = LocalEngine.open(self.root)
        # No test but those of images asks for builders.
        chosen = options or SubmitOptions(base="preview")
        seen: list[events.Event] = []
        run_id = engine.submit(planned, taskset, options=chosen, progress=seen.append)
        self.ran.append(run_id)
        return Ran(engine, run_id, seen, planned)

    def leftovers(self) -> list[str]:
        """Processes, mounts and folders that name something below this folder or its runs."""
        names = [str(self.folder), *self.ran]
        found = [
            line
            for line in Path("/proc/mounts").read_text().splitlines()
            if any(name in line for name in names)
        ]
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if int(entry.name) != os.getpid() and any(name in command for name in names):
                found.append(command)
        scratch = self.root / "scratch"
        found += [str(path) for path in scratch.glob("*")] if scratch.exists() else []
        found += [str(path) for run in self.ran for path in Path("/tmp").glob(f"argo-harbor-{run}")]
        return found

    def settled(self, seconds: float = 5.0) -> list[str]:
        """What is still there after a moment."""
        deadline = time.monotonic() + seconds
        while (found := self.leftovers()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return found


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Ends the test when a run has left anything on the machine."""
    made = Bench(tmp_path)
    yield made
    assert made.settled() == []


@pytest.fixture
def argo(api: ApiServer, tmp_path: Path) -> ArgoBench:
    """An engine before an API server where a platform is installed."""
    install(api)
    return ArgoBench(api, tmp_path)
