"""Plans, tries and records as a run leaves them in a store, for tests of whatever reads them.

Everything is the real model in a real store; only the trials themselves did not happen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from argo_harbor.model.plan import (
    AgentPlan,
    Amounts,
    ImagePlan,
    Images,
    Limits,
    NetworkRules,
    PhaseRules,
    PhaseTimeouts,
    PlanHead,
    Resources,
    SandboxResources,
    Skipped,
    TaskEntry,
    TaskPlan,
    TasksetRef,
)
from argo_harbor.model.platform import BUILT_IN
from argo_harbor.model.profile import Profile
from argo_harbor.model.record import TrialRecord, TrialStarted
from argo_harbor.model.states import VerifierMode
from argo_harbor.store import layout
from argo_harbor.store.directory import DirectoryStore

RUN = "run-0123456789abcdef"
BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_NOTHING = PhaseRules(mode="none")
_AMOUNTS = Amounts(cpus=1, memory_mb=2048, storage_mb=10240)


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def stamp(seconds: float) -> str:
    """A timestamp so many seconds after the runs of these tests began."""
    return (BEGAN + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def task_plan(index: int, name: str) -> TaskPlan:
    return TaskPlan(
        index=index,
        name=name,
        folder=name.rpartition("/")[2] or "task",
        digest=digest_of(name),
        images=Images(
            agent=ImagePlan(
                kind="build", reference=f"registry.invalid/env:{index}", key=digest_of(f"image {index}")
            )
        ),
        resources=SandboxResources(agent=Resources(request=_AMOUNTS, limit=_AMOUNTS)),
        rules=NetworkRules(
            setup=_NOTHING,
            agent=_NOTHING,
            verifier=_NOTHING,
            asked="no-network",
            narrowed=False,
            digest=digest_of("nothing"),
        ),
        timeouts=PhaseTimeouts(
            start=900, healthcheck=0, setup=60, agent=60, verifier=60, collect=0, transfer=60
        ),
        outer_seconds=1140,
        verifier_mode=VerifierMode.SHARED,
    )


@dataclass
class Run:
    """One run in a store. Make it with `make_run`, then add tries."""

    store: DirectoryStore
    head: PlanHead
    run_id: str = RUN
    names: Sequence[str] = ()
    _made: int = field(default=0)

    @cached_property
    def plan(self) -> str:
        """The plan's digest."""
        return self.head.content_digest()

    @property
    def bundle(self) -> Path:
        return self.store.path(layout.bundle(self.run_id).rstrip("/"))

    def uid(self) -> str:
        """A new pod uid; each differs in its first 8 hex."""
        self._made += 1
        return f"{self._made:08x}-0000-4000-8000-000000000000"

    def folder(self, index: int, attempt: int, number: int, uid: str) -> str:
        return layout.try_folder(self.run_id, index, attempt, number, uid)

    def start(self, index: int, attempt: int = 0, number: int = 0, *, uid: str = "") -> str:
        """A try begins; returns its uid."""
        uid = uid or self.uid()
        started = TrialStarted.from_data(
            {"ref": self.ref(index, attempt, number, uid), "started_at": stamp(0)}
        )
        self.store.put(self.folder(index, attempt, number, uid) + layout.STARTED, started.canonical())
        return uid

    def ref(self, index: int, attempt: int, number: int, uid: str) -> dict[str, Any]:
        return {
            "run": self.run_id,
            "plan": self.plan,
            "index": index,
            "attempt": attempt,
            "try": number,
            "uid": uid,
        }

    def record(
        self, index: int, attempt: int = 0, number: int = 0, *, uid: str, **changes: Any
    ) -> TrialRecord:
        """A record as `add` writes it."""
        return TrialRecord.from_data(self.record_data(index, attempt, number, uid=uid, **changes))

    def record_data(
        self, index: int, attempt: int = 0, number: int = 0, *, uid: str, **changes: Any
    ) -> dict[str, Any]:
        """A scored record with a reward of 1; `reward=`, `error=` and `outcome=` are the usual changes."""
        changes = dict(changes)
        reward = changes.pop("reward", 1.0)
        error = changes.pop("error", None)
        outcome = changes.get("outcome", "scored")
        data: dict[str, Any] = {
            "schema_version": "trial-1",
            "ref": self.ref(index, attempt, number, uid),
            "task_name": self.names[index],
            "task_digest": digest_of(self.names[index]),
            "final": True,
            "outcome": outcome,
            "error": {"code": error} if isinstance(error, str) else error,
            "rewards": {"reward": reward} if outcome == "scored" else None,
            "reward_key": "reward",
            "agent_name": self.head.agent.name,
            "agent_version": "1.0",
            "started_at": stamp(index),
            "finished_at": stamp(index + 10 + attempt),
            "sandbox": {"engine": "local", "base": "preview", "network": "none", "limits_enforced": False},
        }
        return data | changes

    def add(
        self,
        index: int,
        attempt: int = 0,
        number: int = 0,
        *,
        uid: str = "",
        files: Mapping[str, bytes] | None = None,
        **changes: Any,
    ) -> TrialRecord:
        """A whole try: its start, its files, its record."""
        uid = self.start(index, attempt, number, uid=uid)
        folder = self.folder(index, attempt, number, uid)
        files = {"trial.log": b"log\n"} if files is None else files
        for path, data in files.items():
            self.store.put(folder + path, data)
        changes.setdefault("files", sorted(files))
        record = self.record(index, attempt, number, uid=uid, **changes)
        self.store.put(folder + layout.TRIAL, record.canonical())
        return record


def make_run(
    root: Path,
    tasks: int | Sequence[str] = 3,
    *,
    attempts: int = 1,
    skipped: Mapping[int, Skipped] | None = None,
    run_id: str = RUN,
    **head: Any,
) -> Run:
    """A run with its plan and request in a store at `root`, and no try yet."""
    names = [f"acme/task-{number:03}" for number in range(tasks)] if isinstance(tasks, int) else list(tasks)
    store = DirectoryStore(root)
    entries = []
    parts = {}
    for index, name in enumerate(names):
        if skipped and index in skipped:
            entries.append(TaskEntry(index=index, name=name, skipped=skipped[index]))
            continue
        part = task_plan(index, name)
        parts[index] = part
        entries.append(
            TaskEntry(index=index, name=name, dag_name=f"task-{index}", part=part.content_digest())
        )
    values: dict[str, Any] = {
        "taskset": TasksetRef(name="suite", digest=digest_of("suite"), total=len(names)),
        "agent": AgentPlan(name="oracle", calls_model=False),
        "n_attempts": attempts,
        "max_retries": 1,
        "infra_retries": 1,
        "reward_key": "reward",
        "limits": Limits(
            cap=4, timeout_seconds=3600, queue_timeout_seconds=3600, build_seconds=600, merge_seconds=600
        ),
        "profile": Profile(name="closed"),
        "platform": BUILT_IN,
        "denied": (),
        "tasks": tuple(entries),
    }
    plan = PlanHead(**(values | head))
    run = Run(store, plan, run_id, names)
    store.put(layout.plan_head(run.plan), plan.canonical())
    for index, part in parts.items():
        # Not through the store: a thousand synced writes would take longer than the test.
        path = store.path(layout.plan_task(run.plan, index))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(part.canonical())
    return run
