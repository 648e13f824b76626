"""Large generated suites: what is too big to be a golden file, checked by counts, sizes and digests instead.

``large_workflows()`` gives the objects to lint and to hold against the schema.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from argo_harbor.model.plan import RunPlan
from argo_harbor.workflow.compile import compile_workflow
from argo_harbor.workflow.emit import to_yaml
from argo_harbor.workflow.limits import size
from tests.support import workflows
from tests.support.plans import generated_plan

Object = dict[str, Any]


class Suite(NamedTuple):
    """One generated suite."""

    tasks: int
    kind: str
    attempts: int = 1

    @property
    def name(self) -> str:
        return f"{self.tasks}-{self.kind}"


SUITE_ARGUMENTS: dict[str, Object] = {
    "own-images": {},
    "shared-images": {"images": 12},
    "one-image": {"images": 1},
    "five-attempts": {},
    "many-shapes": {"shapes": 1000},
    "separate-verifiers": {"separate_every": 2},
}
SUITES = [
    Suite(tasks, kind, 5 if kind == "five-attempts" else 1)
    for tasks in (90, 250, 1000)
    for kind in SUITE_ARGUMENTS
    if tasks == 1000 or kind not in ("one-image", "separate-verifiers")
]
SPLIT = Suite(1000, "five-attempts", 5)


@lru_cache
def plan_of(suite: Suite) -> RunPlan:
    return generated_plan(suite.tasks, suite.attempts, **SUITE_ARGUMENTS[suite.kind])


@lru_cache
def compiled(suite: Suite) -> list[Object]:
    """The objects of a suite's run, the first one first."""
    return [dict(document) for document in compile_workflow(plan_of(suite))]


def summary(suite: Suite) -> Object:
    """What is committed of a suite's objects: counts, sizes in bytes, and one digest over all of them."""
    documents = compiled(suite)
    text = workflows.blotted(json.dumps(documents), plan_of(suite))
    return {
        "objects": len(documents),
        "templates": [len(workflows.templates(each)) for each in documents],
        "chunks": [
            sum(name.startswith("chunk-") for name in workflows.templates(each)) for each in documents
        ],
        "entries": [sum(1 for _ in workflows.entries(each)) for each in documents],
        "trials": sum(workflows.trials(documents).values()),
        "spec_bytes": [size(each).spec for each in documents],  # type: ignore[arg-type]  # plain dicts here
        "status_bytes": [size(each).status for each in documents],  # type: ignore[arg-type]
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }


def large_workflows() -> Iterator[tuple[str, Object]]:
    """Objects worth an ``argo lint`` and a schema check, with names: the largest of each kind, and every part
    of a run that really is split."""
    for suite in SUITES:
        if suite.tasks != 1000 and suite.kind != "many-shapes":
            continue
        documents = compiled(suite)
        chosen = documents if suite == SPLIT else documents[:2]
        for number, document in enumerate(chosen):
            yield f"{suite.name}-{number}", document


def large_texts() -> Iterator[tuple[str, str]]:
    """The same as YAML."""
    return ((name, to_yaml(document)) for name, document in large_workflows())
