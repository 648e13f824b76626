from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from argo_harbor.store.parallel import in_order


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_results_come_in_the_order_of_the_items(threads: int) -> None:
    first = threading.Event()

    def work(item: int) -> int:
        # The first is the last to end, where there is a second thread to end before it.
        if item == 0 and threads > 1:
            first.wait(10)
        if item == 1:
            first.set()
        return item * item

    assert list(in_order(work, range(50), threads=threads)) == [item * item for item in range(50)]
    assert list(in_order(work, [], threads=threads)) == []


def test_memory_is_bounded_by_how_far_it_runs_ahead() -> None:
    taken = []

    def items() -> Iterator[int]:
        for number in range(1000):
            taken.append(number)
            yield number

    results = in_order(lambda item: item, items(), threads=4, ahead=10)
    for expected in range(100):
        assert next(results) == expected
        assert len(taken) <= expected + 12
    results.close()


def test_several_are_at_work_at_once() -> None:
    meeting = threading.Barrier(4, timeout=10)
    assert len(list(in_order(lambda _: meeting.wait(), range(4), threads=4))) == 4


@pytest.mark.parametrize("threads", [1, 4])
def test_an_error_ends_it_and_nothing_new_begins(threads: int) -> None:
    begun = []

    def work(item: int) -> int:
        begun.append(item)
        if item == 3:
            raise ValueError("three")
        return item

    results = in_order(work, range(1000), threads=threads)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(results)
    assert len(begun) <= 3 + 3 * threads + 1
