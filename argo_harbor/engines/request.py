"""`request.json` of a run on this machine: what was asked, and which process drives it.

A process is named by its pid, the kernel's start time of it and the boot, so that a pid that was given away
again is not mistaken for it.
"""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Mapping
from pathlib import Path

from argo_harbor.model.base import canonical_json
from argo_harbor.model.plan import RunPlan
from argo_harbor.store import layout
from argo_harbor.store.base import KeyNotFound, Store

_START_TIME = 19
"""Field of /proc/<pid>/stat after the program's name: clock ticks since boot."""


def write_request(
    store: Store, run_id: str, plan: RunPlan, *, base: str, submitted_at: str, more: Mapping[str, object]
) -> None:
    """Raises: PlatformError `store_write_failed`."""
    request = {
        **more,
        "run": run_id,
        "engine": "local",
        "plan_digest": plan.digest,
        "taskset_ref": plan.head.taskset.ref,
        "base": base,
        "user": _user(),
        "submitted_at": submitted_at,
        "owner": {"pid": os.getpid(), "identity": process_identity(os.getpid())},
    }
    store.put(layout.request(run_id), canonical_json(request))


def owner_lives(store: Store, run_id: str) -> bool:
    """Whether the process that submitted a run still runs on this machine."""
    try:
        owner = json.loads(store.get(layout.request(run_id)))["owner"]
        pid, identity = int(owner["pid"]), str(owner["identity"])
    except (KeyNotFound, ValueError, KeyError, TypeError):
        return False
    return bool(identity) and process_identity(pid) == identity


def process_identity(pid: int) -> str:
    """Boot and start time of a process, empty when there is none of that pid."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return f"{boot}/{fields[_START_TIME]}"
    except (OSError, IndexError):
        return ""


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # No entry in the password file and no variable: containers often have neither.
        return str(os.getuid())
