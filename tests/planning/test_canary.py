from __future__ import annotations

from typing import Any

import pytest

from argo_harbor.planning.plan import plan
from tests.planning.support import OPEN, SITE, spec
from tests.support.tasks import make_task, make_taskset

CONFIGS: list[dict[str, Any]] = [
    {},
    {},
    {},
    {"environment": {"network_mode": "no-network"}},
    {"environment": {"docker_image": "ready:1"}},
    {"verifier": {"environment_mode": "separate"}},
    {"environment": {"network_mode": "no-network"}},
    {"environment": {"network_mode": "allowlist", "allowed_hosts": ["a.example"]}},
]
"""Classes: public at 0, no-network at 3, prebuilt at 4, separate at 5, allowlist at 7."""


def canary(size: int | bool) -> tuple[int, ...]:
    tasks = [make_task(f"acme/t{n}", config, index=n) for n, config in enumerate(CONFIGS)]
    made = plan(make_taskset(*tasks), spec(canary=size), platform=SITE, profile=OPEN)
    return made.head.canary


@pytest.mark.parametrize(
    ("size", "indexes"),
    [
        (0, ()),
        (False, ()),
        (2, (0, 3)),
        (5, (0, 3, 4, 5, 7)),
        (6, (0, 1, 3, 4, 5, 7)),
        (8, tuple(range(8))),
        (True, tuple(range(8))),
    ],
)
def test_one_of_every_class_then_by_index(size: int | bool, indexes: tuple[int, ...]) -> None:
    assert canary(size) == indexes
