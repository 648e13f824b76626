"""Whatever tries a run leaves: nothing is lost, nothing counted twice, and a repeat changes nothing."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as st

from argo_harbor.bundle.merge import merge
from argo_harbor.bundle.verify import verify
from argo_harbor.model.states import Outcome, RunPhase
from argo_harbor.store import layout
from tests.support.records import Run, make_run

TASKS, ATTEMPTS = 3, 2


class Left(NamedTuple):
    """What one try left behind."""

    index: int
    attempt: int
    number: int
    kind: str
    """An outcome, or `started`, or `broken`."""
    final: bool
    reward: float


_LEFT = st.builds(
    Left,
    index=st.integers(0, TASKS - 1),
    attempt=st.integers(0, ATTEMPTS - 1),
    number=st.integers(0, 3),
    kind=st.sampled_from([*(outcome.value for outcome in Outcome), "started", "broken"]),
    final=st.booleans(),
    reward=st.floats(allow_nan=False, allow_infinity=False),
)


def leave(run: Run, left: Left) -> None:
    if left.kind == "started":
        run.start(left.index, left.attempt, left.number)
    elif left.kind == "broken":
        uid = run.start(left.index, left.attempt, left.number)
        run.store.put(run.folder(left.index, left.attempt, left.number, uid) + layout.TRIAL, b"{")
    else:
        run.add(
            left.index,
            left.attempt,
            left.number,
            files={},
            outcome=left.kind,
            error=None if left.kind == "scored" else "internal",
            final=left.final or left.kind == "scored",
            reward=left.reward,
        )


def decided(tries: list[Left]) -> Left | None:
    """The rule in its own words, for tries of different numbers."""
    ordered = sorted(tries, key=lambda left: left.number)
    counting = [left for left in ordered if left.kind in ("scored", "unscored", "errored", "infrastructure")]
    final = [left for left in counting if left.final or left.kind == "scored"]
    errored = [left for left in counting if left.kind == "errored"]
    return final[0] if final else errored[-1] if errored else None


@example(
    tries=[Left(0, 0, 0, "scored", False, 0.0), Left(0, 1, 0, "started", False, 0.0)],
    ended_by=None,
    merge_after=0,
)
@settings(max_examples=15, deadline=None)
@given(
    tries=st.lists(_LEFT, max_size=14, unique_by=lambda left: left[:3]),
    ended_by=st.sampled_from([None, RunPhase.CANCELLED, RunPhase.EXPIRED]),
    merge_after=st.integers(0, 14),
)
def test_any_interleaving_of_tries(tries: list[Left], ended_by: RunPhase | None, merge_after: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(Path(folder), TASKS, attempts=ATTEMPTS)
        for number, left in enumerate(tries):
            leave(run, left)
            if number == merge_after:
                merge(run.run_id, run.store, plan=run.plan)
        state = merge(run.run_id, run.store, plan=run.plan, ended_by=ended_by).state  # type: ignore[arg-type]

        coverage = state.coverage
        assert coverage is not None
        assert coverage.total == TASKS * ATTEMPTS == coverage.scored + coverage.failed + coverage.missing
        assert sum(state.counts.values()) == TASKS

        expected = {
            (index, attempt): found
            for index in range(TASKS)
            for attempt in range(ATTEMPTS)
            if (found := decided([left for left in tries if left[:2] == (index, attempt)])) is not None
        }
        trials = [json.loads(text) for text in (run.bundle / "trials.jsonl").read_text().splitlines()]
        ours = [trial["metadata"]["argo_harbor"] for trial in trials]
        assert {(one["index"], one["attempt"]): one["try"] for one in ours} == {
            key: left.number for key, left in expected.items()
        }
        assert len(trials) == len(expected)
        assert coverage.scored == sum(left.kind == "scored" for left in expected.values())
        assert verify(run.bundle).ok

        before = {path: path.read_bytes() for path in run.bundle.rglob("*") if path.is_file()}
        assert merge(run.run_id, run.store, plan=run.plan).state == state
        assert {path: path.read_bytes() for path in run.bundle.rglob("*") if path.is_file()} == before
