"""Whether a run still wants a try that begins in a pod, by the store's objects and its clock."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from argo_harbor.model.plan import Limits
from argo_harbor.runner.admission import admission
from argo_harbor.store import layout
from argo_harbor.store.directory import DirectoryStore

RUN = "run-1"
LIMITS = Limits(cap=1, timeout_seconds=100, queue_timeout_seconds=50, build_seconds=0, merge_seconds=1)
STARTED = layout.try_folder(RUN, 3, 0, 1, "0a1b2c3d-0000") + layout.STARTED


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    made = DirectoryStore(tmp_path)
    made.put(STARTED, b"{}")
    return made


def put(store: DirectoryStore, key: str, age: float) -> None:
    store.put(key, b"")
    when = time.time() - age
    os.utime(store.path(key), (when, when))


def test_the_first_trial_starts_the_runs_clock(store: DirectoryStore) -> None:
    found = admission(store, RUN, LIMITS, STARTED)
    assert found.stop == ""
    assert found.deadline == pytest.approx(time.time() + 100, abs=5)
    assert [entry.key for entry in store.list(layout.start_marks(RUN))] == [
        f"runs/{RUN}/marks/start/3-0-1-0a1b2c3d"
    ]


def test_later_trials_get_what_is_left(store: DirectoryStore) -> None:
    put(store, layout.start_marks(RUN) + "0-0-0-aaaaaaaa", 60)
    put(store, layout.start_marks(RUN) + "1-0-0-bbbbbbbb", 10)
    found = admission(store, RUN, LIMITS, STARTED)
    assert found.deadline == pytest.approx(time.time() + 40, abs=5)
    assert len(list(store.list(layout.start_marks(RUN)))) == 2


def test_a_spent_budget_starts_nothing_more(store: DirectoryStore) -> None:
    put(store, layout.start_marks(RUN) + "0-0-0-aaaaaaaa", 101)
    found = admission(store, RUN, LIMITS, STARTED)
    assert (found.stop, found.detail) == ("expired", "the run's 100 s were spent before this trial started")


def test_a_run_that_waited_too_long_has_expired_and_stays_so(store: DirectoryStore) -> None:
    put(store, layout.request(RUN), 51)
    for _ in range(2):
        assert admission(store, RUN, LIMITS, STARTED).stop == "expired"
    put(store, layout.request(RUN), 20)
    assert admission(store, RUN, LIMITS, STARTED).stop == ""


def test_a_cancelled_run_starts_nothing(store: DirectoryStore) -> None:
    store.put(layout.cancel_mark(RUN, "x"), b"{}")
    assert admission(store, RUN, LIMITS, STARTED).stop == "cancelled"
    assert not list(store.list(layout.start_marks(RUN)))
