"""A sandbox profile: what the admin allows. Copied into every plan, so that editing it changes no run."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from argo_harbor.model.base import Model

SharedVerifier = Literal["same", "open", "kill"]
"""What happens where grading in the agent's container needs hosts that the agent did not have:
`same` refuses the task, `open` opens them and says so in the trial, `kill` first kills all but execd."""

ProfileName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
Seconds = Annotated[int, Field(ge=1, le=30 * 24 * 3600)]

DENIED_RANGES: tuple[str, ...] = (
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/128",
    "::ffff:0:0/96",
    "64:ff9b:1::/48",
    "100::/64",
    "2001:db8::/32",
    "fc00::/7",
    "fe80::/10",
    "ff00::/8",
)
"""Private, link-local, metadata, reserved and multicast ranges (the special-purpose registries of RFC 6890):
denied in every phase of every run unless the platform's `undeny` names one literally."""


class Toleration(Model):
    """A Kubernetes toleration of the trial pods."""

    key: str = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""


class Profile(Model):
    """Limits of sandboxes, networks, times and concurrency.

    Hosts are host names, `*.` wildcards, addresses, CIDRs, `@group` of the platform, or `@public`
    (any public host).
    """

    name: ProfileName
    description: str = ""
    hosts: tuple[str, ...] = ()
    """What a sandbox may reach at all."""
    agent_setup_egress: tuple[str, ...] = ()
    """Reachable only while the agent is installed."""
    verifier_egress: tuple[str, ...] = ()
    """Reachable only while grading."""
    shared_verifier: SharedVerifier = "same"
    deny: tuple[str, ...] = ()
    """CIDRs denied in every phase, besides `DENIED_RANGES`."""
    max_cpus: float = Field(default=16, gt=0, le=1024)
    max_memory_mb: int = Field(default=65536, ge=1)
    max_storage_mb: int = Field(default=131072, ge=1)
    max_disk_mb: int = Field(default=131072, ge=1)
    """A hard ceiling on disk: 128 GiB, also where `max_storage_mb` is larger."""
    limit_factor: float = Field(default=3, ge=1, le=100)
    """Hard limit divided by request, for cpu and memory."""
    per_run_cap: int = Field(default=20, ge=1, le=10_000)
    """Trials of one run at once."""
    default_timeout_seconds: Seconds = 24 * 3600
    max_timeout_seconds: Seconds = 72 * 3600
    queue_timeout_seconds: Seconds = 48 * 3600
    start_timeout_seconds: Seconds = 900
    """From a pod's start to the sandbox being ready."""
    agent_timeout_seconds: Seconds = 3600
    """For a task that sets none: no agent runs without a limit."""
    runtime_class: str = ""
    gpu: str = ""
    """Kubernetes resource name of the GPUs, e.g. `nvidia.com/gpu`; empty: tasks with GPUs are refused."""
    node_selector: dict[str, str] = Field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
