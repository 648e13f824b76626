"""Which plan a run follows, and reading it back from the store with its digests checked."""

from __future__ import annotations

import json
import re

from pydantic import ValidationError

from argo_harbor.errors import PlatformError, UsageError
from argo_harbor.model.base import Model, sha256_hex
from argo_harbor.model.build_plan import BuildPlan
from argo_harbor.model.plan import PlanHead, TaskPlan
from argo_harbor.model.record import TrialStarted
from argo_harbor.store import layout
from argo_harbor.store.base import KeyNotFound, Store

_DIGEST = re.compile(r"^[0-9a-f]{64}\Z")


def find_plan(run_id: str, store: Store) -> str:
    """Digest of the run's plan: from its request, else from the first try that started.

    A workflow that was submitted by other means has no request; its tries name the plan all the same.
    Raises UsageError `unknown_run` when neither is there.
    """
    if not layout.is_run_id(run_id):
        raise unknown_run(run_id, store)
    try:
        request = json.loads(store.get(layout.request(run_id)))
        digest = request.get("plan_digest") or request.get("plan") if isinstance(request, dict) else None
        if isinstance(digest, str) and _DIGEST.match(digest):
            return digest
    except (KeyNotFound, ValueError):
        pass  # absent or unreadable: the tries below say the same
    for entry in store.list(layout.trials(run_id)):
        if entry.key.endswith("/" + layout.STARTED):
            try:
                digest = TrialStarted.from_json(store.get(entry.key)).ref.plan
            except (KeyNotFound, ValidationError):
                continue
            if _DIGEST.match(digest):
                return digest
    raise unknown_run(run_id, store)


def unknown_run(run_id: str, store: Store) -> UsageError:
    named = run_id if layout.is_run_id(run_id) else repr(run_id)
    return UsageError(
        "unknown_run", f"no run {named} in {store.name}", "argo-harbor runs list shows the runs of a store"
    )


def read_head(digest: str, store: Store) -> PlanHead:
    """Raises PlatformError `plan_unreadable` when it is absent, broken, newer or not what its digest says."""
    return _read(PlanHead, layout.plan_head(digest), digest, store)


def read_part(head: PlanHead, plan_digest: str, index: int, store: Store) -> TaskPlan:
    """The part of one task. Raises PlatformError `plan_unreadable`, KeyError for an index not in the plan."""
    entry = next((entry for entry in head.running if entry.index == index), None)
    if entry is None:
        raise KeyError(index)
    return _read(TaskPlan, layout.plan_task(plan_digest, index), entry.part, store)


def read_builds(digest: str, store: Store) -> BuildPlan:
    """A plan of builds only. Raises PlatformError `plan_unreadable` as `read_head` does."""
    return _read(BuildPlan, layout.build_plan(digest), digest, store)


def _read[M: Model](kind: type[M], key: str, digest: str, store: Store) -> M:
    """The document under `key`, whose bytes have that SHA-256."""
    try:
        data = store.get(key)
    except KeyNotFound as error:
        raise _unreadable(f"{key} is not in {store.name}") from error
    if sha256_hex(data) != digest:
        raise _unreadable(f"{key} is not what its digest says")
    try:
        return kind.from_json(data)
    except ValidationError as error:
        schema = kind.model_fields["schema_version"].default
        raise _unreadable(f"{key} is no {schema} document") from error


def _unreadable(message: str) -> PlatformError:
    return PlatformError(
        "plan_unreadable", message, "compile or submit again with this version of argo-harbor"
    )
