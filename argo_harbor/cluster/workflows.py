"""Workflows of ours in a cluster: create, find, list, stop, and what their status says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from argo_harbor.cluster.client import Cluster, Json
from argo_harbor.cluster.nodes import Node, read_nodes
from argo_harbor.cluster.objects import ApiObject
from argo_harbor.cluster.paths import workflows as path_of
from argo_harbor.workflow import names


class Workflow(ApiObject):
    """One Workflow. Its phase is Argo's word: empty before its controller saw it, then Pending, Running,
    Succeeded, Failed, Error."""

    @property
    def plan(self) -> str:
        """Digest of the plan that it runs, 64 hex; empty for a workflow that is none of ours."""
        return self.annotations.get(names.PLAN_LABEL, "")

    @property
    def builds(self) -> str:
        """Digest of the build plan of a workflow of builds only; empty for every other."""
        return self.annotations.get(names.BUILDS_LABEL, "")

    @property
    def user(self) -> str:
        return self.annotations.get(names.USER_LABEL, "")

    @property
    def owners(self) -> tuple[str, ...]:
        """UIDs of the objects that it belongs to; a part of a run belongs to the run's workflow."""
        return tuple(str(each.get("uid", "")) for each in self._owners)

    @property
    def is_part(self) -> bool:
        """Whether it is a part of a run too large for one Workflow: those belong to another workflow."""
        return any(each.get("kind") == "Workflow" for each in self._owners)

    @property
    def shutdown(self) -> str:
        """`Stop` or `Terminate` when somebody ended it."""
        return str((self.data.get("spec") or {}).get("shutdown") or "")

    @property
    def suspended(self) -> bool:
        return bool((self.data.get("spec") or {}).get("suspend"))

    @property
    def message(self) -> str:
        return str(self.status.get("message") or "")

    @property
    def finished(self) -> str:
        """RFC 3339; empty while it runs."""
        return str(self.status.get("finishedAt") or "")

    @property
    def templates(self) -> tuple[Mapping[str, Any], ...]:
        """Its templates, its own or those of the WorkflowTemplate that it was made from."""
        stored = self.status.get("storedWorkflowTemplateSpec")
        spec = stored if isinstance(stored, dict) else self.data.get("spec") or {}
        return tuple(each for each in spec.get("templates") or () if isinstance(each, dict))

    @property
    def over(self) -> bool:
        """Nothing of it will start any more, the exit handler included."""
        return self.phase in ("Succeeded", "Failed", "Error")

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Empty also where the status does not hold them: see `knows_nodes`."""
        return self._nodes or ()

    @property
    def knows_nodes(self) -> bool:
        return self._nodes is not None

    @cached_property
    def _nodes(self) -> tuple[Node, ...] | None:
        return read_nodes(self.status)

    @property
    def _owners(self) -> tuple[Mapping[str, Any], ...]:
        owned = self.metadata.get("ownerReferences") or ()
        return tuple(each for each in owned if isinstance(each, dict))


def create_workflow(cluster: Cluster, body: Json, *, dry_run: bool = False) -> Workflow:
    """Raises: AlreadyExists, Rejected, Forbidden, Unreachable (then it may exist all the same)."""
    return Workflow(cluster.create(path_of(cluster.namespace), body, dry_run=dry_run))


def find_workflow(cluster: Cluster, name: str) -> Workflow | None:
    """Raises: ClusterError."""
    found = cluster.find(path_of(cluster.namespace, name))
    return None if found is None else Workflow(found)


def list_runs(cluster: Cluster, *, user_label: str = "", active: bool = False) -> Iterator[Workflow]:
    """Workflows that are runs of ours; parts of other runs are left out. Raises: ClusterError."""
    labels = [names.PLAN_LABEL]
    labels += [f"{names.USER_LABEL}={user_label}"] if user_label else []
    labels += [f"{names.COMPLETED_LABEL}!=true"] if active else []
    for item in cluster.list(path_of(cluster.namespace), labels=",".join(labels)):
        workflow = Workflow(item)
        if not workflow.is_part:
            yield workflow


def list_builds(cluster: Cluster, *, active: bool = False) -> Iterator[Workflow]:
    """Workflows of builds only, which are no runs. Raises: ClusterError."""
    labels = [names.BUILDS_LABEL, *([f"{names.COMPLETED_LABEL}!=true"] if active else [])]
    yield from map(Workflow, cluster.list(path_of(cluster.namespace), labels=",".join(labels)))


def list_parts(cluster: Cluster, run: Workflow) -> list[Workflow]:
    """The workflows that a split run has created so far, by name. Raises: ClusterError."""
    label = run.labels.get(names.PLAN_LABEL, "")
    found = cluster.list(
        path_of(cluster.namespace), labels=f"{names.PLAN_LABEL}={label}" if label else names.PLAN_LABEL
    )
    owned = (workflow for workflow in map(Workflow, found) if run.uid in workflow.owners)
    return sorted(owned, key=lambda workflow: workflow.name)


def parts_of(cluster: Cluster, run: str) -> list[Workflow]:
    """The same by the run's name, for those who know no more of it. Raises: ClusterError."""
    found = cluster.list(path_of(cluster.namespace), labels=f"{names.RUN_LABEL}={run}")
    return sorted(map(Workflow, found), key=lambda workflow: workflow.name)


def stop_workflow(cluster: Cluster, name: str) -> None:
    """End what runs of it and let its exit handler run, as `argo stop` does. Raises: ClusterError."""
    cluster.merge_patch(path_of(cluster.namespace, name), {"spec": {"shutdown": "Stop"}})
