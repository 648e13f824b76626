"""Which template a task's entry calls, and the templates themselves: one per pod shape, or open ones for
very many.

The decision is made once for a whole run, so that all parts of a split run look alike.
"""

from __future__ import annotations

from collections.abc import Iterable

from argo_harbor.model.plan import RunPlan
from argo_harbor.model.states import VerifierMode
from argo_harbor.workflow import names
from argo_harbor.workflow.limits import MAX_POD_SHAPES
from argo_harbor.workflow.objects import DAGTask, Template
from argo_harbor.workflow.pods import RunReference
from argo_harbor.workflow.services import ALONE
from argo_harbor.workflow.tasks import PlannedTask
from argo_harbor.workflow.trial import (
    PodShape,
    fixed_template,
    open_name,
    open_template,
    shape_arguments,
    trial_shape,
)
from argo_harbor.workflow.verifier import VERIFIER_PREFIX, VerifiedShape, verified_shape, verified_template

Shape = PodShape | VerifiedShape


class Shapes:
    """Pod shapes of a run and their templates."""

    def __init__(self, plan: RunPlan, tasks: Iterable[PlannedTask]) -> None:
        self._plan = plan
        self._shapes: dict[int, Shape] = {}
        # Shapes hold models, whose hashes are slow: most tasks of a suite share one.
        same: dict[Shape, Shape] = {}
        for task in tasks:
            shape = _shape(task)
            self._shapes[task.index] = same.setdefault(shape, shape)
        self._calls: dict[Shape, DAGTask] = {}
        self._made: dict[tuple[str, RunReference], Template] = {}
        self.open = len(self._fixed_names(same)) > MAX_POD_SHAPES
        """Whether resources and deadline are parameters, in pods without services: what those are made of
        cannot be one."""

    def call(self, task: PlannedTask) -> DAGTask:
        """Name of the task's template, with the arguments that shape its pods where the template is open."""
        shape = self._shapes[task.index]
        if shape not in self._calls:
            self._calls[shape] = self._call(shape)
        return self._calls[shape]

    def templates(self, tasks: Iterable[PlannedTask], reference: RunReference) -> list[Template]:
        """The templates that these tasks need, in the order of the tasks."""
        found: dict[str, Template] = {}
        for shape in dict.fromkeys(self._shapes[task.index] for task in tasks):
            pods = shape if isinstance(shape, VerifiedShape) else (shape,)
            for pod in pods:
                name = self._pod_name(pod, shape)
                if (name, reference) not in self._made:
                    make = open_template if self._is_open(shape) else fixed_template
                    self._made[name, reference] = make(self._plan, pod, reference)
                found[name] = self._made[name, reference]
            if isinstance(shape, VerifiedShape):
                found.setdefault(self._name(shape), self._verified(shape))
        return list(found.values())

    def _call(self, shape: Shape) -> DAGTask:
        call: DAGTask = {"name": "", "template": self._name(shape)}
        if not self._is_open(shape):
            return call
        if isinstance(shape, VerifiedShape):
            arguments = shape_arguments(self._plan, shape.agent)
            arguments += shape_arguments(self._plan, shape.verify, VERIFIER_PREFIX)
        else:
            arguments = shape_arguments(self._plan, shape)
        return {**call, "arguments": {"parameters": arguments}}

    def _verified(self, shape: VerifiedShape) -> Template:
        pods = (self._pod_name(shape.agent, shape), self._pod_name(shape.verify, shape))
        if not self._is_open(shape):
            return verified_template(self._name(shape), pods)
        extra = [each["name"] for each in shape_arguments(self._plan, shape.agent)]
        return verified_template(self._name(shape), pods, (extra, extra))

    def _name(self, shape: Shape) -> str:
        if isinstance(shape, PodShape):
            return self._pod_name(shape, shape)
        if not self._is_open(shape):
            return shape.template
        return f"{names.TRIAL_VERIFIED}-{shape.agent.net}-{shape.verify.net}"

    def _pod_name(self, pod: PodShape, shape: Shape) -> str:
        """Name of the template of a pod of that shape."""
        return open_name(pod) if self._is_open(shape) else pod.template

    def _is_open(self, shape: Shape) -> bool:
        first = shape.agent if isinstance(shape, VerifiedShape) else shape
        return self.open and first.beside == ALONE

    @staticmethod
    def _fixed_names(shapes: Iterable[Shape]) -> set[str]:
        found: set[str] = set()
        for shape in shapes:
            found.add(shape.template)
            found.update(pod.template for pod in shape if isinstance(pod, PodShape))
        return found


def _shape(task: PlannedTask) -> Shape:
    separate = task.part.verifier_mode is VerifierMode.SEPARATE
    return verified_shape(task.part) if separate else trial_shape(task.part)
