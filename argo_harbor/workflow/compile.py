"""From a plan to the Argo objects that run it. Pure: no clock, no files, no chance; the same plan gives the
same bytes.

Called by the `compile` command, by publishing and by submitting.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

from argo_harbor.errors import UsageError
from argo_harbor.model.plan import RunPlan
from argo_harbor.workflow import assemble, names, network
from argo_harbor.workflow.assemble import AnyWorkflow, Kind
from argo_harbor.workflow.build import Build, build_entry, build_templates, builds, run_templates
from argo_harbor.workflow.checks import check_plan
from argo_harbor.workflow.entries import succeeded, trial_entry
from argo_harbor.workflow.gate import gate_template
from argo_harbor.workflow.graph import WATCH, Graph
from argo_harbor.workflow.limits import SIZED_TRIES, breaches, fits, json_bytes, status_bytes
from argo_harbor.workflow.merge import merge_template
from argo_harbor.workflow.nodes import NodeCounter
from argo_harbor.workflow.objects import Template, Workflow
from argo_harbor.workflow.pods import PART, WHOLE, RunReference
from argo_harbor.workflow.schedule import check_schedule
from argo_harbor.workflow.shapes import Shapes
from argo_harbor.workflow.shard import chain, shard_template
from argo_harbor.workflow.split import split
from argo_harbor.workflow.tasks import PlannedTask, planned_tasks
from argo_harbor.workflow.watch import watch_template


def compile_workflow(
    plan: RunPlan,
    *,
    kind: Kind = "workflow",
    schedule: str | None = None,
    present: Collection[str] = (),
    host_variables: bool = False,
) -> list[AnyWorkflow]:
    """The object that runs the plan; for a run too large for one, the parent first and then its parts in
    order.

    `kind` is what the first object becomes; parts are always Workflows, which a step of the parent creates.
    `schedule` is a cron line, only used by a cronworkflow; without one it is suspended until somebody starts
    it. `present` are keys of images that the registry has: a workflow that is submitted at once does not
    build them. With `host_variables` the submitter brings their values, in a Secret of the run's own.

    Raises Refused for what a workflow cannot hold, with all findings; UsageError for an unknown kind, a
    broken schedule and a plan without a running task.
    """
    if kind not in assemble.KINDS:
        raise UsageError("unknown_flag_value", f"{kind!r} is no kind", f"kinds: {', '.join(assemble.KINDS)}")
    check_plan(plan, host_variables=host_variables)
    cron = check_schedule(schedule) if schedule is not None else None
    whole = _Compiler(plan, present).whole()
    # Parts lie in the store under the plan's digest, so nothing of the moment may be in them.
    workflows = [whole] if fits(whole) else _Compiler(plan).split()
    for workflow in workflows:
        if broken := breaches(workflow):
            raise AssertionError(f"emitted what Argo does not take: {broken}")
    return [assemble.as_kind(workflows[0], plan, kind, cron), *workflows[1:]]


class _Compiler:
    """What the workflows of one plan share."""

    def __init__(self, plan: RunPlan, present: Collection[str] = ()) -> None:
        self._plan = plan
        self._tasks = planned_tasks(plan, present)
        self._builds: dict[str, Build] = {
            key: build for key, build in builds(self._tasks).items() if key not in present
        }
        self._shapes = Shapes(plan, self._tasks)
        self._ground = network.Ground.of(plan)
        self._fence = network.fence(self._ground, builds=any(task.built for task in self._tasks))
        self._graph = partial(
            Graph,
            self._builds,
            self._shapes,
            fence=[template["name"] for template in self._fence],
            attempts=plan.head.n_attempts,
        )
        chosen = set(plan.head.canary)
        if chosen.issuperset(task.index for task in self._tasks):
            # A gate with nothing behind it would only delay the merge.
            chosen = set()
        self._canary = [task for task in self._tasks if task.index in chosen]
        self._rest = [task for task in self._tasks if task.index not in chosen]

    def whole(self) -> Workflow:
        templates = self._graph().templates(self._canary, self._rest)
        templates += [watch_template(self._plan), *self._work(self._tasks, WHOLE)]
        if self._canary:
            templates.append(gate_template(self._plan, WHOLE))
        templates.append(merge_template(self._plan))
        return assemble.whole(self._plan, templates, builds=len(self._builds))

    def split(self) -> list[Workflow]:
        """Parent and parts; the canary has parts of its own, before the gate in the parent."""
        weigh = self._weigher()
        first = split(self._canary, self._part, weigh, first=0)
        # Without a canary one part would be the whole, which did not fit.
        least = 1 if first else 2
        parts = first + split(self._rest, self._part, weigh, first=len(first), least=least)
        templates = chain(len(parts), canary_parts=len(first), first=f"{names.NETWORK_BASE}.Succeeded")
        templates[0]["dag"]["tasks"][:0] = [
            {"name": names.NETWORK_BASE, "template": names.NETWORK_BASE},
            WATCH,
        ]
        templates += [
            network.base_template(self._ground),
            watch_template(self._plan),
            shard_template(self._plan),
        ]
        if self._canary:
            templates.append(gate_template(self._plan, WHOLE))
        templates.append(merge_template(self._plan))
        return [assemble.whole(self._plan, templates, builds=len(self._builds)), *parts]

    def _part(self, tasks: Sequence[PlannedTask], number: int) -> Workflow:
        templates = [*self._graph(watched=False).templates([], tasks), *self._work(tasks, PART)]
        return assemble.part(
            self._plan, templates, number=number, builds=len({key for task in tasks for key in task.built})
        )

    def _work(self, tasks: Sequence[PlannedTask], reference: RunReference) -> list[Template]:
        """The templates that entries call, below the DAGs."""
        shaped = self._shapes.templates(tasks, reference)
        build = build_templates(self._plan, reference, tasks, run_templates(self._tasks))
        return [*self._fence, *build, *shaped]

    def _weigher(self) -> Callable[[PlannedTask], int]:
        """What a task adds to the size of a workflow: its entry, its builds, and their nodes in the
        status."""
        ready = succeeded(template["name"] for template in self._fence)
        counter = NodeCounter(self._work(self._tasks, PART), tries=SIZED_TRIES)

        def weight(task: PlannedTask) -> int:
            called = self._shapes.call(task)
            entries = [
                trial_entry(task, called, attempts=self._plan.head.n_attempts, depends=ready),
                *(build_entry(self._builds[key], ready) for key in task.built),
            ]
            return sum(json_bytes(entry) + status_bytes(counter.entry(entry)) for entry in entries)

        return weight
