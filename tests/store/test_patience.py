from __future__ import annotations

import pytest

from argo_harbor.store import patience
from argo_harbor.store.patience import Fault, Patience, pause_after, persist

PASSING = Fault("SlowDown", "", retryable=True)


class Scripted:
    """Fails as told, then returns how often it was called; time passes only in `sleep`."""

    def __init__(self, *faults: Fault) -> None:
        self.faults = list(faults)
        self.calls = 0
        self.slept: list[float] = []

    def __call__(self) -> int:
        self.calls += 1
        if self.faults:
            raise self.faults.pop(0)
        return self.calls

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def monotonic(self) -> float:
        return sum(self.slept)


def run(monkeypatch: pytest.MonkeyPatch, action: Scripted, budget: Patience) -> int:
    monkeypatch.setattr(patience, "time", action)
    return persist(action, budget)


def test_what_passes_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    action = Scripted(PASSING, PASSING)
    assert run(monkeypatch, action, Patience(attempts=3)) == 3
    assert len(action.slept) == 2


def test_the_last_fault_is_raised_when_the_attempts_are_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    action = Scripted(PASSING, PASSING, last := Fault("InternalError", "", retryable=True), PASSING)
    with pytest.raises(Fault) as caught:
        run(monkeypatch, action, Patience(attempts=3))
    assert caught.value is last
    assert action.calls == 3


def test_no_attempt_begins_after_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    action = Scripted(*[PASSING] * 100)
    with pytest.raises(Fault):
        run(monkeypatch, action, Patience(attempts=100, first=1, longest=1, total=10))
    assert sum(action.slept) <= 10
    assert action.calls < 25


def test_what_does_not_pass_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    action = Scripted(Fault("AccessDenied", ""))
    with pytest.raises(Fault):
        run(monkeypatch, action, Patience())
    assert action.calls == 1


def test_pauses_grow_differ_and_are_bounded() -> None:
    budget = Patience(first=0.2, longest=5)
    for attempt in range(1, 20):
        longest = min(5, 0.2 * 2 ** (attempt - 1))
        pauses = {pause_after(PASSING, attempt, budget) for _ in range(20)}
        assert len(pauses) > 1
        assert all(longest / 2 <= pause <= longest for pause in pauses)


@pytest.mark.parametrize(("asked", "least"), [(0.0, 0.1), (3.0, 3.0), (3600.0, 5.0)])
def test_the_servers_wish_counts_within_bounds(asked: float, least: float) -> None:
    wish = Fault("SlowDown", "", retryable=True, wait=asked)
    assert least <= pause_after(wish, 1, Patience(first=0.2, longest=5)) <= 5
