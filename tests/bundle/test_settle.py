"""Waiting for tries that are still ending, and no longer than that."""

from __future__ import annotations

from pathlib import Path

from argo_harbor.bundle.settle import wait_for_tries
from argo_harbor.store import layout
from tests.support.records import Run, make_run


def waited(
    run: Run, alive: list[frozenset[str] | None], *, seconds: float = 60.0
) -> tuple[int, int, list[str]]:
    """Tries without a record, looks before the end, what was said. `alive` is the answer to each look."""
    looks = iter(alive)
    said: list[str] = []
    pauses: list[float] = []
    lost = wait_for_tries(
        run.run_id,
        run.store,
        alive=lambda: next(looks),
        seconds=seconds,
        say=said.append,
        sleep=pauses.append,
    )
    return lost, len(pauses), said


def test_nothing_to_wait_for(tmp_path: Path) -> None:
    run = make_run(tmp_path, 2)
    run.add(0)
    assert waited(run, []) == (0, 0, [])


def test_a_try_is_waited_for_while_its_pod_lives(tmp_path: Path) -> None:
    run = make_run(tmp_path, 2)
    uid = run.start(0)
    lost, looks, said = waited(run, [frozenset({uid[:8]}), frozenset({uid[:8], "ffffffff"}), frozenset()])
    assert (lost, looks) == (1, 2)
    assert said == ["waiting for the records of 1 tries that are still ending"]


def test_a_record_that_comes_ends_the_wait(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    uid = run.start(0)

    def arrive(_: float) -> None:
        run.add(0, uid=uid)

    alive = frozenset({uid[:8]})
    assert wait_for_tries(run.run_id, run.store, alive=lambda: alive, say=print, sleep=arrive) == 0


def test_the_half_of_a_separate_verifier_is_an_end(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    uid = run.start(0)
    run.store.put(run.folder(0, 0, 0, uid) + layout.AGENT_HALF, b"{}")
    assert waited(run, []) == (0, 0, [])


def test_when_nobody_knows_the_pods_only_the_time_ends_it(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    run.start(0)
    assert waited(run, [None], seconds=0.0)[0] == 1
    assert waited(run, [None, None, frozenset()])[:2] == (1, 2)
