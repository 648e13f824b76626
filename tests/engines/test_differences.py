from __future__ import annotations

from argo_harbor.engines.differences import MAX_SHOWN, plan_differences
from argo_harbor.model.plan import PlanHead
from argo_harbor.model.spec import RunSpec
from argo_harbor.planning.plan import plan
from tests.support.tasks import make_taskset


def head(**spec: object) -> PlanHead:
    return plan(make_taskset(), RunSpec.for_agent("nop", **spec)).head  # type: ignore[arg-type]


def test_the_same_plan_differs_in_nothing() -> None:
    assert plan_differences(head(), head()) == []


def test_values_lists_and_objects() -> None:
    old = head()
    new = old.model_copy(
        update={
            "n_attempts": 2,
            "parent": "p" * 100,
            "denied": ("10.0.0.0/8",),
            "profile": old.profile.model_copy(update={"max_cpus": 2.0}),
        }
    )
    found = dict(plan_differences(old, new))
    assert found["n_attempts"] == "1 → 2"
    assert found["profile.max_cpus"] == "16.0 → 2.0"
    assert found["denied"].endswith(" entries → 1 entries")
    assert found["parent"] == f"nothing → {'p' * 59}…"


def test_more_differences_than_anybody_reads() -> None:
    old = head()
    new = old.model_copy(update={"denied": tuple(f"{each}x" for each in old.denied)})
    found = plan_differences(old, new)
    assert len(found) == MAX_SHOWN + 1
    assert found[-1].text == f"and {len(old.denied) - MAX_SHOWN} more differences"
