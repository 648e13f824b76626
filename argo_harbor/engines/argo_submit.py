"""Submitting to a cluster: one request becomes one Workflow, however often it is repeated.

The API server's name conflict is the lock: a name is made from the request's key, so two who submit under
one key cannot both succeed. What a name stands for is decided by the plan's digest in the Workflow's
annotations, or in the store when the Workflow is gone.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from argo_harbor.bundle.merge import read_state
from argo_harbor.bundle.plans import find_plan
from argo_harbor.cluster.client import Cluster, Json
from argo_harbor.cluster.errors import AlreadyExists, ClusterError, NotFound, Unreachable
from argo_harbor.cluster.workflows import Workflow, create_workflow, find_workflow, list_runs
from argo_harbor.engines import argo_secrets, events, run_names
from argo_harbor.engines.argo_errors import asking, explain
from argo_harbor.engines.publish import publish
from argo_harbor.engines.request import check_same
from argo_harbor.errors import PlatformError, UsageError
from argo_harbor.model.base import canonical_json, sha256_hex
from argo_harbor.model.plan import RunPlan
from argo_harbor.model.taskset import Taskset
from argo_harbor.store import layout
from argo_harbor.store.base import Store
from argo_harbor.workflow import names, objects
from argo_harbor.workflow.compile import compile_workflow
from argo_harbor.workflow.text import prose

_LOOKS = (1.0, 3.0, 6.0)
"""Seconds between looks for a workflow whose creation was not answered."""


@dataclass(frozen=True, slots=True)
class Order:
    """One request, ready to be sent."""

    plan: RunPlan
    taskset: Taskset
    user: str
    key: str
    """The caller's idempotency key; empty: one is drawn, and the name with it."""
    host: Mapping[str, str]
    """Variables of the submitter's shell, by name."""
    present: Collection[str]
    """Keys of images that the registry has."""
    request: Mapping[str, object]


def submit_order(order: Order, cluster: Cluster, store: Store, progress: events.Progress) -> str:
    """Publish, create the Workflow and return the run's id.

    Raises: Refused, Conflict `idempotency_conflict`, PlatformError.
    """
    workflows = compile_order(order)
    key, name = choose_name(order, cluster.namespace, workflows)
    if order.key:
        found = _earlier(name, cluster, store)
        if found:
            check_same(name, found, order.plan, order.key, store)
            progress(events.RunFound(name))
            return name
        body = run_names.without_collisions(workflows[0], name)
    else:
        body = workflows[0]
    published = publish(order.plan, order.taskset, store, workflows=workflows)
    progress(events.Published(published.taskset))
    for other in _running(order, cluster):
        progress(events.AlreadyRunning(other))
    created = _create(named(body, name, order), order, key, cluster, store)
    if created is None:
        progress(events.RunFound(name))
        return name
    _write_request(created, order, key, store)
    head = order.plan.head
    progress(
        events.RunAccepted(
            run=name,
            plan_digest=order.plan.digest,
            tasks=len(order.plan.parts),
            trials=len(order.plan.parts) * head.n_attempts,
            cap=head.limits.cap,
            base="image",
            base_reason="",
            store=store.name,
            network="fenced",
        )
    )
    return name


def compile_order(order: Order) -> list[objects.Workflow]:
    """The Workflow of the run and, of one too large for one, its parts. Raises: Refused."""
    compiled = compile_workflow(order.plan, present=order.present, host_variables=True)
    return cast("list[objects.Workflow]", compiled)


def choose_name(order: Order, namespace: str, workflows: list[objects.Workflow]) -> tuple[str, str]:
    """Key and name of the run: the caller's key, or one drawn until no two steps share an id."""
    if order.key:
        return order.key, run_names.keyed_name(namespace, order.user, order.key)
    while True:
        key = run_names.fresh_key()
        name = run_names.keyed_name(namespace, order.user, key)
        if not run_names.collisions(workflows[0], name):
            return key, name


def named(workflow: objects.Workflow, name: str, order: Order) -> Json:
    """The Workflow as it is sent: its name, and whose it is."""
    metadata: Json = dict(workflow["metadata"])
    del metadata["generateName"]
    labels = {**metadata.get("labels", {}), names.USER_LABEL: user_label(order.user)}
    annotations = {**metadata.get("annotations", {}), names.USER_LABEL: prose(order.user)}
    return {**workflow, "metadata": {**metadata, "name": name, "labels": labels, "annotations": annotations}}


def user_label(user: str) -> str:
    """A user's name as a label may hold it: 16 hex of its hash."""
    return sha256_hex(user.encode())[:16]


def _earlier(name: str, cluster: Cluster, store: Store) -> str:
    """Digest of the plan that the name stands for already; empty when it is free."""
    with asking(cluster, "look for an earlier run"):
        workflow = find_workflow(cluster, name)
    if workflow is not None:
        return workflow.plan or "unknown"
    state = read_state(name, store)
    if state is not None:
        return state.plan
    with suppress(UsageError):
        return find_plan(name, store)
    return ""


def _running(order: Order, cluster: Cluster) -> list[str]:
    """Active runs of the same user on the same taskset."""
    taskset = prose(order.plan.head.taskset.ref)
    with asking(cluster, "look for running runs"):
        return [
            other.name
            for other in list_runs(cluster, user_label=user_label(order.user), active=True)
            if not other.over and other.annotations.get(names.TASKSET_ANNOTATION) == taskset
        ]


def _create(body: Json, order: Order, key: str, cluster: Cluster, store: Store) -> Workflow | None:
    """The created workflow; None when the same request was there first.

    Raises: Conflict, PlatformError; an unclear failure says how to repeat the request.
    """
    name = str(body["metadata"]["name"])
    if order.host:
        with asking(cluster, "create the Secret for host: variables"):
            argo_secrets.write_host_secret(cluster, name, order.host)
    try:
        created = _created(body, name, cluster)
    except AlreadyExists:
        check_same(name, _earlier(name, cluster, store), order.plan, key, store)
        return None
    except Unreachable as error:
        raise PlatformError(
            "platform_unreachable",
            f"it is not clear whether {name} was created: {error.message}",
            f"repeat the command with --idempotency-key {key}: it finds the run or creates it",
        ) from error
    except ClusterError as error:
        if order.host:
            with suppress(ClusterError):
                argo_secrets.delete_host_secret(cluster, name)
        raise explain(error, cluster, "create the run") from error
    if order.host:
        with asking(cluster, f"let {name} own its Secret"):
            argo_secrets.own_host_secret(cluster, created)
    return created


def _created(body: Json, name: str, cluster: Cluster) -> Workflow:
    """Create, and look when the answer is lost. Raises: ClusterError."""
    try:
        return create_workflow(cluster, body)
    except Unreachable as error:
        for seconds in _LOOKS:
            time.sleep(seconds)
            with suppress(Unreachable, NotFound):
                found = find_workflow(cluster, name)
                if found is not None and found.plan == body["metadata"]["annotations"][names.PLAN_LABEL]:
                    return found
        raise error


def _write_request(workflow: Workflow, order: Order, key: str, store: Store) -> None:
    """For runs whose Workflow is gone: nothing that runs depends on it."""
    request = {
        **order.request,
        "run": workflow.name,
        "engine": "argo",
        "plan_digest": order.plan.digest,
        "taskset_ref": order.plan.head.taskset.ref,
        "user": order.user,
        "submitted_at": workflow.created or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "idempotency_key": key,
        "workflow_uid": workflow.uid,
    }
    store.put(layout.request(workflow.name), canonical_json(request))
