"""Containers beside the sandbox: what a task's `docker-compose.yaml` asks for, read and checked.

Made by `sources`, turned into the plan's `ServicePlan` by `planning`. The parts that both hold are models;
what only a source has is a dataclass, as in `taskset`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pydantic import Field

from argo_harbor.errors import Finding
from argo_harbor.model.base import Model
from argo_harbor.model.taskset import ImageSource

MAX_SERVICES: Final = 16
"""Services of one task besides `main`: a pod is one place on one machine."""
RESERVED_PORTS: Final = {
    44772: "execd",
    18080: "the egress container",
    18081: "the egress container",
    18082: "the runner",
    15353: "the egress container's name server",
}
"""Ports of a trial pod that are taken, and who has them: all its containers share one network."""
SILENT_CPUS: Final = 0.25
SILENT_MEMORY_MB: Final = 512
STORAGE_MB: Final = 1024
"""What a service gets where the compose file is silent; of disk there is nothing to write there."""


class HealthProbe(Model):
    """A healthcheck as a node carries it out: until it passes once, nothing that comes later starts."""

    command: tuple[str, ...] = Field(min_length=1)
    """Run inside the container; exit status 0 is healthy."""
    period_seconds: int = Field(ge=1)
    timeout_seconds: int = Field(ge=1)
    failures: int = Field(ge=1)
    """So many in a row make the service unhealthy, which ends the trial's pod."""


class ServiceMount(Model):
    """A folder that does not come from the image; empty at first."""

    path: str = Field(pattern=r"^/")
    volume: str = ""
    """Name of the volume, shared with every container that mounts it; empty for memory of its own."""
    read_only: bool = False
    size_mb: int = Field(default=0, ge=0)
    """Most that memory may hold; 0 for as much as the container may use."""


@dataclass(frozen=True, slots=True)
class ServiceValue:
    """One variable of a container, as the compose file gives it."""

    name: str
    text: str | None
    """Its value; with `variable` the default, None when there is none."""
    variable: str = ""
    """What the whole value reads: a name that a run can grant."""
    optional: bool = False
    """True where the container does without it, when there is no value."""


@dataclass(frozen=True, slots=True)
class Service:
    """One container beside the sandbox."""

    name: str
    image: ImageSource
    entrypoint: tuple[str, ...] | None = None
    """Instead of the image's own; None to keep that."""
    command: tuple[str, ...] | None = None
    environment: tuple[ServiceValue, ...] = ()
    """Sorted by name."""
    working_dir: str = ""
    user: int | None = None
    group: int | None = None
    ports: tuple[int, ...] = ()
    """Ports that it listens on, sorted."""
    probe: HealthProbe | None = None
    once: bool = False
    """True for one that is waited for until it ends, as `service_completed_successfully` says."""
    cpus: float | None = None
    memory_mb: int | None = None
    mounts: tuple[ServiceMount, ...] = ()


@dataclass(frozen=True, slots=True)
class Compose:
    """What the compose file of a task asks for."""

    services: tuple[Service, ...] = ()
    """In the order in which they start; `main` is not among them."""
    environment: tuple[ServiceValue, ...] = ()
    """Of `main`."""
    mounts: tuple[ServiceMount, ...] = ()
    """Of `main`."""
    working_dir: str = ""
    """Of `main`."""
    findings: tuple[Finding, ...] = ()
    """What cannot be mapped, with file and key. With any, the rest is worth nothing."""
