"""Reading back the tries of an attempt."""

from __future__ import annotations

from pathlib import Path

from argo_harbor.model.record import AgentHalf
from argo_harbor.model.states import Outcome
from argo_harbor.runner.tries import earlier_tries, find_half, has_final
from argo_harbor.store import layout
from tests.support.records import Run, make_run


def a_run(folder: Path) -> Run:
    return make_run(folder, ["acme/one"])


def test_nothing_came_before_the_first_try(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    found = earlier_tries(run.store, run=run.run_id, index=0, attempt=0, before=0)
    assert (found.decided, found.outcomes) == (False, ())


def test_errored_and_lost_tries_are_counted_and_later_ones_are_not(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    run.add(0, number=0, outcome="errored", error="agent_crashed", final=False)
    run.start(0, number=1)
    run.add(0, number=3)
    found = earlier_tries(run.store, run=run.run_id, index=0, attempt=0, before=3)
    assert (found.decided, found.outcomes) == (False, (Outcome.ERRORED, Outcome.INFRASTRUCTURE))


def test_a_final_record_decides(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    run.start(0, number=0)
    run.add(0, number=1)
    assert earlier_tries(run.store, run=run.run_id, index=0, attempt=0, before=2).decided


def test_the_latest_half_is_found_and_broken_ones_are_passed_over(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    assert find_half(run.store, run=run.run_id, index=0, attempt=0) is None
    for number in (0, 1, 2):
        uid = run.start(0, number=number)
        half = AgentHalf(
            record=run.record(0, number=number, uid=uid), gradable=True, trial_dir="agent-files.tar.gz"
        )
        text = half.canonical() if number < 2 else b"{}"
        run.store.put(run.folder(0, 0, number, uid) + layout.AGENT_HALF, text)
    found = find_half(run.store, run=run.run_id, index=0, attempt=0)
    assert found is not None
    assert found[1].record.ref.try_ == 1


def test_whether_any_try_has_decided(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    run.add(0, number=0, outcome="errored", error="agent_crashed", final=False)
    assert not has_final(run.store, run=run.run_id, index=0, attempt=0)
    run.add(0, number=1)
    assert has_final(run.store, run=run.run_id, index=0, attempt=0)
