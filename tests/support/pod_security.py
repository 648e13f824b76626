"""Kubernetes' Pod Security Standard "baseline", as far as the pods of ours could break it.

https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

ALLOWED_CAPABILITIES = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)
_HOST = ("hostNetwork", "hostPID", "hostIPC")


def baseline_findings(pod: dict[str, Any], containers: Iterable[dict[str, Any]]) -> Iterator[str]:
    """What breaks the standard, as ``container: what``; ``pod`` has the fields of a pod's spec."""
    for key in _HOST:
        if pod.get(key):
            yield f"pod: {key}"
    for volume in pod.get("volumes") or ():
        if "hostPath" in volume:
            yield f"pod: volume {volume['name']} of the host"
    yield from (f"pod: {what}" for what in _of_context(pod.get("securityContext") or {}))
    for container in containers:
        name = container.get("name", "main")
        context = container.get("securityContext") or {}
        yield from (f"{name}: {what}" for what in _of_context(context))
        if context.get("privileged"):
            yield f"{name}: privileged"
        added = (context.get("capabilities") or {}).get("add") or ()
        yield from (f"{name}: {each}" for each in added if each not in ALLOWED_CAPABILITIES)
        if context.get("procMount", "Default") != "Default":
            yield f"{name}: procMount"
        yield from (
            f"{name}: port of the host" for port in container.get("ports") or () if port.get("hostPort")
        )


def _of_context(context: dict[str, Any]) -> Iterator[str]:
    if (context.get("seccompProfile") or {}).get("type") == "Unconfined":
        yield "no seccomp"
    if (context.get("appArmorProfile") or {}).get("type") == "Unconfined":
        yield "no AppArmor"
    if context.get("sysctls"):
        yield "sysctls"
    if set(context.get("seLinuxOptions") or ()) & {"user", "role"}:
        yield "SELinux user or role"
