"""`request.json` of a run on this machine: what was asked, and which process drives it.

A process is named by its pid, the kernel's start time of it and the boot, so that a pid that was given away
again is not mistaken for it.
"""

from __future__ import annotations

import getpass
import json
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from argo_harbor.bundle.plans import read_head
from argo_harbor.engines.differences import Difference, plan_differences
from argo_harbor.errors import Conflict, Finding, PlatformError
from argo_harbor.model.base import canonical_json
from argo_harbor.model.plan import RunPlan
from argo_harbor.store import layout
from argo_harbor.store.base import KeyNotFound, Store

_LOOK_SECONDS = 0.1
_ENDED = frozenset("ZXx")
"""States of /proc/<pid>/stat."""
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
        "user": user_name(),
        "submitted_at": submitted_at,
        "owner": {"pid": os.getpid(), "identity": process_identity(os.getpid())},
    }
    store.put(layout.request(run_id), canonical_json(request))


def read_request(store: Store, run_id: str) -> Mapping[str, Any]:
    """What was asked; empty when that is not there or cannot be read."""
    try:
        found = json.loads(store.get(layout.request(run_id)))
    except (KeyNotFound, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def find_same(run_id: str, plan: RunPlan, key: str, store: Store) -> bool:
    """Whether the run that a key stands for is there; Raises: Conflict when it asked for something else."""
    digest = str(read_request(store, run_id).get("plan_digest", ""))
    if digest:
        check_same(run_id, digest, plan, key, store)
    return bool(digest)


def check_same(run_id: str, digest: str, plan: RunPlan, key: str, store: Store) -> None:
    """Hold a request against the plan of the run that its key stands for.

    Raises: Conflict `idempotency_conflict` with one item for each difference.
    """
    if digest == plan.digest:
        return
    differences: list[Difference] = []
    with suppress(PlatformError):
        differences = plan_differences(read_head(digest, store), plan.head)
    raise Conflict(
        "idempotency_conflict",
        f"the key {key} belongs to {run_id}, which asked for something else",
        "repeat that request, or give another --idempotency-key",
        [Finding("idempotency_conflict", text, key=where) for where, text in differences],
    )


def owner_lives(store: Store, run_id: str) -> bool:
    """Whether the process that submitted a run still runs on this machine."""
    return _owner(store, run_id) is not None


def end_owner(store: Store, run_id: str, seconds: float) -> None:
    """Tell the process that drives a run to end its trials, and wait for it to go."""
    limit = time.monotonic() + seconds
    pid = _owner(store, run_id)
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    while pid is not None and time.monotonic() < limit:
        time.sleep(_LOOK_SECONDS)
        pid = _owner(store, run_id)


def _owner(store: Store, run_id: str) -> int | None:
    """Pid of the process that submitted a run, as long as it is the same process."""
    try:
        owner = read_request(store, run_id)["owner"]
        pid, identity = int(owner["pid"]), str(owner["identity"])
    except (ValueError, KeyError, TypeError):
        return None
    return pid if identity and process_identity(pid) == identity else None


def process_identity(pid: int) -> str:
    """Boot and start time of a process, empty when there is none of that pid, or only what its parent has not
    yet taken note of."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        if fields[0] in _ENDED:
            return ""
        return f"{boot}/{fields[_START_TIME]}"
    except (OSError, IndexError):
        return ""


def user_name() -> str:
    """Who runs this program; the number of an account without a name."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # No entry in the password file and no variable: containers often have neither.
        return str(os.getuid())
