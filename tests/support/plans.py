"""Plans for tests: of the examples, of generated suites, and made by hand where no folder is needed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from argo_harbor.model.plan import (
    AgentPlan,
    Amounts,
    Grants,
    ImagePlan,
    Images,
    Limits,
    NetworkRules,
    PhaseRules,
    PhaseTimeouts,
    PlanHead,
    Resources,
    RunPlan,
    SandboxResources,
    TaskEntry,
    TaskPlan,
    TasksetRef,
)
from argo_harbor.model.platform import BUILT_IN, Platform
from argo_harbor.model.profile import DENIED_RANGES, Profile
from argo_harbor.model.spec import RunSpec
from argo_harbor.model.states import VerifierMode
from argo_harbor.planning.plan import plan
from argo_harbor.settings.platform import read_platform
from argo_harbor.settings.profiles import load_profile
from argo_harbor.sources.directory import read_directory
from tests.support.suites import make_shapes
from tests.support.tasks import make_task, make_taskset

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@lru_cache
def example_plan(name: str) -> RunPlan:
    """The plan of an example suite with the oracle; the allowlist suite needs a platform and a profile."""
    taskset, spec = read_directory(EXAMPLES / name), RunSpec.for_agent("oracle")
    if name != "allowlist":
        return plan(taskset, spec)
    platform = read_platform(EXAMPLES / "platform.toml")
    return plan(taskset, spec, platform=platform, profile=load_profile("open-internet"))


def generated_plan(
    tasks: int, attempts: int = 1, *, images: int = 0, shapes: int = 4, separate_every: int = 0
) -> RunPlan:
    """The plan of a suite made in memory, of tasks like those that `make_suite` writes.

    `images` is the number of different images, 0 for one a task; `shapes` that of different resources and
    timeouts; every n-th task has a separate verifier.
    """
    variety = make_shapes(shapes)
    members = []
    for number in range(tasks):
        shape = variety[number % shapes]
        separate = separate_every and number % separate_every == separate_every - 1
        config = {
            "environment": {
                "cpus": shape.cpus,
                "memory_mb": shape.memory_mb,
                "storage_mb": shape.storage_mb,
                "network_mode": "public",
            },
            "agent": {"timeout_sec": float(shape.agent_timeout)},
            "verifier": {"timeout_sec": 300.0} | ({"environment_mode": "separate"} if separate else {}),
        }
        members.append(
            make_task(
                f"acme/task-{number:04d}",
                config,
                index=number,
                environment=f"image {number % images if images else number}",
            )
        )
    return plan(make_taskset(*members), RunSpec.for_agent("oracle", attempts=attempts))


def hexes(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def built(name: str) -> ImagePlan:
    """An image with that name as the content of its context."""
    key = hexes(name)
    return ImagePlan(
        kind="build", reference=f"registry.example/env:{key[:32]}", key=key, context="environment"
    )


def prebuilt(reference: str = "docker.io/library/ubuntu:24.04") -> ImagePlan:
    return ImagePlan(kind="prebuilt", reference=reference)


def resources(cpus: float = 1, memory_mb: int = 2048, gpus: int = 0) -> Resources:
    request = Amounts(cpus=cpus, memory_mb=memory_mb, storage_mb=10240, gpus=gpus)
    limit = Amounts(cpus=cpus * 3, memory_mb=memory_mb * 3, storage_mb=10240, gpus=gpus)
    return Resources(request=request, limit=limit)


def task_plan(
    index: int,
    *,
    name: str = "",
    image: ImagePlan | None = None,
    verifier_image: ImagePlan | None = None,
    sandbox: Resources | None = None,
    seconds: int = 1800,
    network: str = "none",
) -> TaskPlan:
    """One task; a verifier image makes its verifier a separate one."""
    phase = PhaseRules(mode=network)  # type: ignore[arg-type]  # tests name the modes
    timeouts = PhaseTimeouts(
        start=900, healthcheck=0, setup=0, agent=600, verifier=300, collect=0, transfer=0
    )
    separate = verifier_image is not None
    return TaskPlan(
        index=index,
        name=name or f"acme/task-{index:04}",
        folder=f"task-{index:04}",
        digest=hexes(f"task {index}"),
        images=Images(agent=image or prebuilt(), verifier=verifier_image),
        resources=SandboxResources(
            agent=sandbox or resources(), verifier=(sandbox or resources()) if separate else None
        ),
        rules=NetworkRules(
            setup=phase, agent=phase, verifier=phase, asked="public", narrowed=False, digest=hexes(network)
        ),
        timeouts=timeouts,
        outer_seconds=seconds,
        verifier_outer_seconds=seconds // 2 if separate else 0,
        verifier_mode=VerifierMode.SEPARATE if separate else VerifierMode.SHARED,
    )


def run_plan(
    parts: Sequence[TaskPlan],
    *,
    dag_names: Sequence[str] = (),
    attempts: int = 1,
    canary: Sequence[int] = (),
    cap: int = 20,
    taskset: str = "suite",
    agent: AgentPlan | None = None,
    grants: Grants | None = None,
    platform: Platform = BUILT_IN,
    profile: Profile | None = None,
) -> RunPlan:
    """A whole plan around hand-made tasks; DAG names default to `task-<index>`."""
    names = dag_names or [f"task-{part.index:04}" for part in parts]
    entries = [
        TaskEntry(index=part.index, name=part.name, dag_name=name, part=hexes(name))
        for part, name in zip(parts, names, strict=True)
    ]
    head = PlanHead(
        taskset=TasksetRef(name=taskset, digest=hexes(taskset), total=max(len(parts), 1)),
        agent=agent or AgentPlan(name="oracle", calls_model=False),
        grants=grants or Grants(),
        n_attempts=attempts,
        max_retries=0,
        infra_retries=1,
        reward_key="reward",
        limits=Limits(
            cap=cap,
            timeout_seconds=86400,
            queue_timeout_seconds=172800,
            build_seconds=2100,
            merge_seconds=1800,
        ),
        canary=tuple(canary),
        profile=profile or Profile(name="closed"),
        platform=platform,
        denied=DENIED_RANGES,
        tasks=tuple(entries),
    )
    return RunPlan(head=head, parts=tuple(parts))
