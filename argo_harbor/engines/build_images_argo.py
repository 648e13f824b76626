"""Builds the images of a taskset in a cluster: Workflows of builds only, and where they are.

Nothing is remembered on this machine: whoever asks again finds the Workflows by their labels, the plan of
each in the store, and what has ended in the records of the images. Two who build the same taskset at once do
no harm, since tags are named by content; whoever comes second leaves out what the first is building.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from argo_harbor.bundle.images import ImageState, image_states
from argo_harbor.bundle.plans import read_builds
from argo_harbor.cluster.client import Cluster, Json
from argo_harbor.cluster.pods import list_pods
from argo_harbor.cluster.workflows import Workflow, create_workflow, find_workflow, list_builds
from argo_harbor.engines import run_names
from argo_harbor.engines.argo_errors import asking
from argo_harbor.engines.argo_observe import BuildStep, observe_builds
from argo_harbor.engines.argo_submit import user_label
from argo_harbor.engines.build_images import ImageLine, lines_of
from argo_harbor.errors import PlatformError
from argo_harbor.model.build import BuildRecord
from argo_harbor.model.build_plan import BuildPlan
from argo_harbor.store import layout
from argo_harbor.store.base import Store
from argo_harbor.workflow import names
from argo_harbor.workflow.builds_only import compile_builds
from argo_harbor.workflow.objects import Workflow as WorkflowObject
from argo_harbor.workflow.text import prose

_GONE = "its workflow is gone, and left no record of it"


@dataclass
class ArgoBuilding:
    """See `Building`."""

    plan: BuildPlan
    cluster: Cluster
    store: Store
    ready: frozenset[str]
    """Keys of images that were there before."""
    started: Sequence[str] = ()
    joined: Sequence[str] = ()
    _plans: dict[str, BuildPlan] = field(default_factory=dict)

    def look(self) -> list[ImageLine]:
        """Raises: PlatformError."""
        keys = [planned.image.key for planned in self.plan.images]
        if not (self.started or self.joined):
            return lines_of(self.plan, self._known(image_states(self.store, keys)))
        steps: dict[str, BuildStep] = {}
        for name in (*self.joined, *self.started):
            for key, step in self.steps(name).items():
                # What has ended in one workflow may be tried again in another.
                if key not in steps or steps[key].over:
                    steps[key] = step
        # After the steps, so that a step that has ended has left its record.
        lines = lines_of(self.plan, self._known(image_states(self.store, keys)))
        return [self._line(line, steps.get(line.planned.image.key)) for line in lines]

    def _known(self, states: Mapping[str, ImageState]) -> dict[str, ImageState]:
        return {
            key: ImageState("ready", state.record if state.word == "ready" else None)
            if key in self.ready
            else state
            for key, state in states.items()
        }

    def steps(self, name: str) -> dict[str, BuildStep]:
        """Where the builds of one Workflow are, by image key. None of one that is gone."""
        with asking(self.cluster, f"look at {name}"):
            workflow = find_workflow(self.cluster, name)
            if workflow is None:
                return {}
            pods = [] if workflow.over else list_pods(self.cluster, name)
        plan = self._plan_of(workflow)
        if plan is None:
            return {}
        found = observe_builds(workflow, pods, logins=self.plan.platform.secrets.image_pull)
        return {
            plan.images[place].image.key: step for place, step in found.items() if place < len(plan.images)
        }

    def _line(self, line: ImageLine, step: BuildStep | None) -> ImageLine:
        """What the store says of an image, and what its step adds."""
        if line.planned.image.key in self.ready:
            return line
        if step is None:
            return line if line.settled else _failed(line, _GONE)
        if step.state == "unknown":
            return line if line.settled else replace(line, word="building")
        if step.state == "failed":
            return line if line.word == "failed" else _failed(line, step.detail)
        if step.state == "ready":
            return line if line.word == "ready" else replace(line, word="ready", record=None)
        return replace(line, word=step.state, detail=step.detail)

    def _plan_of(self, workflow: Workflow) -> BuildPlan | None:
        digest = workflow.builds
        if digest not in self._plans:
            try:
                self._plans[digest] = read_builds(digest, self.store)
            except PlatformError as error:
                if error.code != "plan_unreadable":
                    raise
                return None
        return self._plans[digest]


def start_builds(
    plan: BuildPlan, cluster: Cluster, store: Store, *, user: str, ready: Collection[str]
) -> ArgoBuilding:
    """Start what is neither `ready` (image keys) nor being built by another Workflow for the same taskset.

    Raises: Refused, PlatformError.
    """
    building = ArgoBuilding(plan, cluster, store, frozenset(ready))
    joined: list[str] = []
    wanted = frozenset(plan.by_key) - building.ready
    for workflow in _running(plan, cluster):
        keys = {key for key, step in building.steps(workflow.name).items() if not step.over} & wanted
        if keys:
            joined.append(workflow.name)
            wanted -= keys
    building.joined = tuple(joined)
    building.started = tuple(_start(plan.only(wanted), cluster, store, user=user)) if wanted else ()
    return building


def _start(plan: BuildPlan, cluster: Cluster, store: Store, *, user: str) -> Iterator[str]:
    """Create the Workflows of a plan; gives their names."""
    workflows = compile_builds(plan)
    store.put(layout.build_plan(plan.content_digest()), plan.canonical())
    for workflow in workflows:
        body = _named(workflow, user)
        with asking(cluster, "start the builds"):
            yield create_workflow(cluster, body).name


def _named(workflow: WorkflowObject, user: str) -> Json:
    """The Workflow as it is sent: under a name that gives no two steps one id, and whose it is."""
    name = f"build-{secrets.token_hex(8)}"
    while run_names.collisions(workflow, name):
        name = f"build-{secrets.token_hex(8)}"
    metadata: Json = dict(workflow["metadata"])
    del metadata["generateName"]
    labels = {**metadata["labels"], names.USER_LABEL: user_label(user)}
    annotations = {**metadata["annotations"], names.USER_LABEL: prose(user)}
    return {**workflow, "metadata": {**metadata, "name": name, "labels": labels, "annotations": annotations}}


def _running(plan: BuildPlan, cluster: Cluster) -> list[Workflow]:
    with asking(cluster, "look for running builds"):
        return [
            workflow
            for workflow in list_builds(cluster, active=True)
            if not workflow.over and workflow.annotations.get(names.TASKSET_ANNOTATION) == prose(plan.taskset)
        ]


def _failed(line: ImageLine, why: str) -> ImageLine:
    image = line.planned.image
    record = BuildRecord(
        image_key=image.key, ok=False, reference=image.reference, message=why, code="image_build_failed"
    )
    return ImageLine(line.planned, "failed", why, record)
