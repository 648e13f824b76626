"""The main DAG of a workflow: network, builds, trials, and the gate behind the canary.

    network-base, network-internet, network-build → build-<image> → <task>
    with a canary: its builds and tasks → gate → everything else

Entries stand in `main` while they fit there, in chunks otherwise. Used for a whole run and for each part of
a split one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from argo_harbor.workflow import names
from argo_harbor.workflow.build import Build, build_entry
from argo_harbor.workflow.chunks import cut
from argo_harbor.workflow.entries import dag_template, settled, succeeded, trial_entry
from argo_harbor.workflow.limits import MAX_DAG_TASKS
from argo_harbor.workflow.objects import DAGTask, Template
from argo_harbor.workflow.shapes import Shapes
from argo_harbor.workflow.tasks import PlannedTask

WATCH: DAGTask = {"name": "A--watch", "template": names.WATCH}
"""Nothing waits for it. Of entries that may start at once Argo takes the first by name: with one that comes
before those of all tasks (theirs have no two dashes in a row, and none may begin with a digit) it gets its
place under the cap before pods that wait in vain can take them all."""
_PASSED = succeeded([names.GATE])


class Graph:
    """Makes the DAG templates of one workflow."""

    def __init__(
        self,
        builds: Mapping[str, Build],
        shapes: Shapes,
        *,
        fence: Sequence[str],
        attempts: int,
        watched: bool = True,
    ) -> None:
        """`fence` are the templates of the network policies, which come first: nothing of a run starts
        outside its fence. `watched` is false for a part: its parent has the watch."""
        policies: list[DAGTask] = [{"name": name, "template": name} for name in fence]
        self._first = policies + ([WATCH] if watched else [])
        self._ready = succeeded(fence)
        self._builds = builds
        self._shapes = shapes
        self._attempts = attempts

    def templates(self, canary: Sequence[PlannedTask], rest: Sequence[PlannedTask]) -> list[Template]:
        """`main`, and its chunks where the entries do not fit into it. Without a canary there is no gate."""
        keys = {key for task in (*canary, *rest) for key in task.built}
        entries = len(self._first) + len(keys) + len(canary) + len(rest) + bool(canary)
        return [self._flat(canary, rest)] if entries <= MAX_DAG_TASKS else self._chunked(canary, rest)

    def _flat(self, canary: Sequence[PlannedTask], rest: Sequence[PlannedTask]) -> Template:
        entries = list(self._first)
        start = self._ready
        first = _built(canary)
        if canary:
            entries += self._wave(canary, start, fresh=first, visible=first)
            entries.append(_gate(task.dag_name for task in canary))
            start = _PASSED
        visible = {**first, **_built(rest)}
        entries += self._wave(rest, start, fresh=visible.keys() - first.keys(), visible=visible)
        return dag_template(names.MAIN, entries)

    def _chunked(self, canary: Sequence[PlannedTask], rest: Sequence[PlannedTask]) -> list[Template]:
        entries = list(self._first)
        chunks: list[Template] = []
        hoisted: set[str] = set()
        start = self._ready
        for tasks in (canary, rest) if canary else (rest,):
            wave = cut(tasks)
            fresh = [key for key in wave.hoisted if key not in hoisted]
            hoisted.update(fresh)
            entries += [build_entry(self._builds[key], start) for key in fresh]
            made: list[str] = []
            for chunk in wave.chunks:
                name = names.chunk_name(len(chunks))
                made.append(name)
                inner = self._wave(chunk.tasks, "", fresh=chunk.builds, visible=chunk.builds)
                chunks.append(dag_template(name, inner))
                depends = self._depends(start, chunk.waits_for, fresh)
                entries.append({"name": name, "template": name, "depends": depends})
            if tasks is canary:
                entries.append(_gate(made))
                start = _PASSED
        return [dag_template(names.MAIN, entries), *chunks]

    def _wave(
        self,
        tasks: Iterable[PlannedTask],
        start: str,
        *,
        fresh: Collection[str],
        visible: Collection[str],
    ) -> list[DAGTask]:
        """Builds and trials of one DAG that may begin at `start`.

        `fresh` are the image keys to build here, `visible` those with a build in this DAG at all.
        """
        tasks = list(tasks)
        wanted = dict.fromkeys(key for task in tasks for key in task.built if key in fresh)
        entries = [build_entry(self._builds[key], start) for key in wanted]
        for task in tasks:
            needed = [key for key in task.built if key in visible]
            depends = self._depends(start, needed, fresh)
            entries.append(
                trial_entry(task, self._shapes.call(task), attempts=self._attempts, depends=depends)
            )
        return entries

    def _depends(self, start: str, needed: Sequence[str], fresh: Collection[str]) -> str:
        """What waits for these builds; for `start` as well, unless they all wait for it themselves."""
        built = succeeded(self._builds[key].name for key in needed)
        if needed and all(key in fresh for key in needed):
            return built
        return " && ".join(filter(None, (start, built)))


def _gate(waits_for: Iterable[str]) -> DAGTask:
    return {"name": names.GATE, "template": names.GATE, "depends": settled(waits_for)}


def _built(tasks: Iterable[PlannedTask]) -> dict[str, None]:
    """Image keys that the tasks need built, in order."""
    return dict.fromkeys(key for task in tasks for key in task.built)
