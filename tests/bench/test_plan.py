"""How long planning takes. Figures are printed with `-s`, and judged by people."""

from __future__ import annotations

import time

import pytest

from argo_harbor.model.spec import RunSpec
from argo_harbor.planning.plan import plan
from tests.support.tasks import make_task, make_taskset

BEST_OF = 3


@pytest.mark.bench
@pytest.mark.parametrize("count", [89, 1000])
def test_planning(count: int) -> None:
    tasks = [
        make_task(
            f"acme/task-{number:04d}",
            {
                "environment": {"cpus": 1 + number % 4, "memory_mb": 1024 * (1 + number % 7)},
                "agent": {"timeout_sec": 600 + number},
            },
            index=number,
        )
        for number in range(count)
    ]
    taskset = make_taskset(*tasks)
    spec = RunSpec.for_agent("oracle", canary=10)
    seconds = []
    for _ in range(BEST_OF):
        before = time.perf_counter()
        made = plan(taskset, spec)
        digest = made.digest
        seconds.append(time.perf_counter() - before)
    assert len(made.parts) == count
    print(f"\nplan {count:>4} tasks: {min(seconds):.3f} s ({digest[:12]})")
