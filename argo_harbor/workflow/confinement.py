"""What every container with foreign code in a trial pod is given and denied: rights, cpu, memory, disk.

Used for the sandbox and for the services beside it.
"""

from __future__ import annotations

from typing import NamedTuple

from argo_harbor.model.plan import Amounts
from argo_harbor.workflow.objects import ResourceRequirements, SecurityContext
from argo_harbor.workflow.pods import mebibytes, millicores

DROPPED_CAPABILITIES = (
    # With NET_RAW a process can mark its packets as the egress container's own and pass every rule.
    "NET_RAW",
    "NET_ADMIN",
    "SYS_ADMIN",
    "SYS_PTRACE",
    "SYS_MODULE",
    "SYS_TIME",
    "MKNOD",
    "AUDIT_WRITE",
)
"""SETUID, SETGID and CHOWN stay: execd runs commands as the task's users."""


def confined() -> SecurityContext:
    """The security context of a container with foreign code; the user is not part of it."""
    return {
        "seccompProfile": {"type": "RuntimeDefault"},
        "capabilities": {"drop": list(DROPPED_CAPABILITIES)},
    }


class Quantities(NamedTuple):
    """Resources of a sandbox as Kubernetes writes them, or Argo's references to parameters that hold them."""

    cpu: str
    memory: str
    storage: str
    gpus: str


def quantities(amounts: Amounts) -> Quantities:
    return Quantities(
        cpu=millicores(amounts.cpus),
        memory=mebibytes(amounts.memory_mb),
        storage=mebibytes(amounts.storage_mb),
        gpus=str(amounts.gpus) if amounts.gpus else "",
    )


def requirements(request: Quantities, limit: Quantities, gpu: str) -> ResourceRequirements:
    """What the sandbox asks for and where it is stopped; `gpu` is the cluster's name of that resource, or
    empty."""
    return {"requests": _amounts(request, gpu), "limits": _amounts(limit, gpu)}


def _amounts(amounts: Quantities, gpu: str) -> dict[str, str]:
    listed = {"cpu": amounts.cpu, "memory": amounts.memory, "ephemeral-storage": amounts.storage}
    return {**listed, gpu: amounts.gpus} if gpu and amounts.gpus else listed
