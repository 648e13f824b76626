"""Cpu, memory, disk and GPUs of a task's sandboxes, and the profile's ceilings on them.

Flags replace task.toml for the agent's sandbox only; the ceilings hold for flags and task.toml, for the
agent and for a separate verifier alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import reduce

from argo_harbor.model.plan import Amounts, Resources, SandboxResources
from argo_harbor.model.profile import Profile
from argo_harbor.model.services import SILENT_CPUS as SERVICE_CPUS
from argo_harbor.model.services import SILENT_MEMORY_MB as SERVICE_MEMORY_MB
from argo_harbor.model.services import STORAGE_MB as SERVICE_STORAGE_MB
from argo_harbor.model.services import Service
from argo_harbor.model.spec import SandboxRequest
from argo_harbor.model.task import MAX_MEGABYTES, EnvironmentConfig
from argo_harbor.model.taskset import Task
from argo_harbor.planning.report import Report

SILENT_CPUS = 1.0
SILENT_MEMORY_MB = 2048
SILENT_STORAGE_MB = 10240
"""What a task gets where its task.toml is silent, or the profile's ceiling where that is lower."""

_NO_FLAGS = SandboxRequest()


class Sizes:
    """Plans the resources of tasks. Tasks of a suite share few sizes, so each is built once."""

    def __init__(self, profile: Profile, flags: SandboxRequest, report: Report) -> None:
        """Reports `resources_exceed_policy` for flags, once and not for every task."""
        self._profile = profile
        self._flags = flags
        self._known: dict[tuple[float, int, int, int], Resources] = {}
        self._check(
            "execution.sandbox",
            report,
            cpus=flags.cpus,
            memory_mb=flags.memory_mb,
            storage_mb=flags.storage_mb,
        )

    def plan(self, task: Task, report: Report) -> SandboxResources:
        """Reports `resources_exceed_policy`, `gpu_unsupported`, and what no profile can offer."""
        agent = self._sandbox(task.config.environment, self._flags, "environment", report)
        separate = [
            self._sandbox(own, _NO_FLAGS, key, report)
            for own, key in _verifier_environments(task)
            if own is not None
        ]
        # One size serves every step's verifier, because a trial has one place for them.
        verifier = reduce(self._larger, separate) if separate else None
        return SandboxResources(agent=agent, verifier=verifier)

    def of_service(self, service: Service) -> Resources:
        """What a container beside the sandbox gets; `check_together` holds it against the ceilings."""
        return self._resources(
            service.cpus or SERVICE_CPUS, service.memory_mb or SERVICE_MEMORY_MB, SERVICE_STORAGE_MB, 0
        )

    def check_together(
        self, main: Resources, services: Mapping[str, Resources], file: str, report: Report
    ) -> None:
        """Reports `resources_exceed_policy` where the sandbox and its services together pass a ceiling."""
        profile = self._profile
        for field, ceiling in (
            ("cpus", profile.max_cpus),
            ("memory_mb", min(profile.max_memory_mb, MAX_MEGABYTES)),
            ("storage_mb", _disk_ceiling(profile)),
        ):
            own = getattr(main.request, field)
            beside = {name: getattr(each.request, field) for name, each in services.items()}
            if own <= ceiling < own + sum(beside.values()):
                listed = ", ".join(f"{name} {_written(value)}" for name, value in beside.items())
                report.refuse(
                    "resources_exceed_policy",
                    f"{field} of the sandbox ({_written(own)}) and its services ({listed}) are together "
                    f"above {_written(ceiling)}, the ceiling of profile {profile.name}",
                    key="services",
                    file=file,
                    hint="lower them here and in task.toml, or choose a profile with a higher ceiling "
                    "(argo-harbor profiles list)",
                )

    def _sandbox(
        self, environment: EnvironmentConfig, flags: SandboxRequest, key: str, report: Report
    ) -> Resources:
        self._refuse_odd_machines(environment, key, report)
        profile = self._profile
        cpus = None if flags.cpus else environment.cpus
        memory = None if flags.memory_mb else environment.memory_mb
        storage = None if flags.storage_mb else environment.storage_mb
        self._check(key, report, cpus=cpus, memory_mb=memory, storage_mb=storage)
        return self._resources(
            float(flags.cpus or cpus or min(SILENT_CPUS, profile.max_cpus)),
            flags.memory_mb or memory or min(SILENT_MEMORY_MB, profile.max_memory_mb),
            flags.storage_mb or storage or min(SILENT_STORAGE_MB, _disk_ceiling(profile)),
            environment.gpus or 0,
        )

    def _check(
        self,
        table: str,
        report: Report,
        *,
        cpus: float | None,
        memory_mb: int | None,
        storage_mb: int | None,
    ) -> None:
        profile = self._profile
        for field, value, ceiling in (
            ("cpus", cpus, profile.max_cpus),
            ("memory_mb", memory_mb, min(profile.max_memory_mb, MAX_MEGABYTES)),
            ("storage_mb", storage_mb, _disk_ceiling(profile)),
        ):
            if value is not None and value > ceiling:
                report.refuse(
                    "resources_exceed_policy",
                    f"{field} {_written(value)} is above {_written(ceiling)}, "
                    f"the ceiling of profile {profile.name}",
                    key=f"{table}.{field}",
                    hint="lower the value, or choose a profile with a higher ceiling "
                    "(argo-harbor profiles list)",
                )

    def _refuse_odd_machines(self, environment: EnvironmentConfig, key: str, report: Report) -> None:
        if environment.gpus and not self._profile.gpu:
            report.refuse(
                "gpu_unsupported",
                f"asks for {environment.gpus} GPUs and profile {self._profile.name} has none",
                key=f"{key}.gpus",
                hint="choose a profile with gpu set (argo-harbor profiles list)",
            )
        if environment.tpu is not None:
            report.refuse(
                "invalid_task_config",
                "asks for a TPU, and no sandbox has one",
                key=f"{key}.tpu",
                hint="remove the key or leave the task out with --tasks",
            )
        if environment.os != "linux":
            report.refuse(
                "invalid_task_config",
                f"asks for {environment.os}, and every sandbox is linux",
                key=f"{key}.os",
                hint="leave the task out with --tasks",
            )

    def _resources(self, cpus: float, memory: int, storage: int, gpus: int) -> Resources:
        known = self._known.get((cpus, memory, storage, gpus))
        if known is None:
            factor = self._profile.limit_factor
            known = Resources(
                request=Amounts(cpus=cpus, memory_mb=memory, storage_mb=storage, gpus=gpus),
                # Disk is no burst: what is written stays, so the task gets just what it asks for.
                limit=Amounts(
                    cpus=_thousandths(cpus * factor),
                    memory_mb=math.ceil(memory * factor),
                    storage_mb=storage,
                    gpus=gpus,
                ),
            )
            self._known[cpus, memory, storage, gpus] = known
        return known

    def _larger(self, one: Resources, other: Resources) -> Resources:
        a, b = one.request, other.request
        return self._resources(
            max(a.cpus, b.cpus),
            max(a.memory_mb, b.memory_mb),
            max(a.storage_mb, b.storage_mb),
            max(a.gpus, b.gpus),
        )


def _disk_ceiling(profile: Profile) -> int:
    return min(profile.max_storage_mb, profile.max_disk_mb, MAX_MEGABYTES)


def _thousandths(cpus: float) -> float:
    """Rounded up to what Kubernetes counts in, so that a limit is neither nothing nor below the request."""
    # Six decimals first: 0.1 times 3 is 0.3 and a trifle, which must not become 0.301.
    return max(1, math.ceil(round(cpus * 1000, 6))) / 1000


def _written(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _verifier_environments(task: Task) -> list[tuple[EnvironmentConfig | None, str]]:
    """Environments of separate verifiers, each with the table of task.toml that it comes from."""
    config = task.config
    found = []
    for number, step in enumerate(task.steps or (None,)):
        environment = config.verifier_environment(step)
        if environment is config.environment:
            key = "environment"
        elif step is not None and environment is step.verifier.environment:
            key = f"steps[{number}].verifier.environment"
        else:
            key = "verifier.environment"
        found.append((environment, key))
    return found
