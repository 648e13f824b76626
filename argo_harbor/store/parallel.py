"""Several requests to a store at once, where that pays off, with results in order and bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor


def in_order[T, R](
    function: Callable[[T], R], items: Iterable[T], *, threads: int, ahead: int = 0
) -> Iterator[R]:
    """`function` of every item, in the order of the items, by that many threads.

    At most `ahead` results wait for their turn, by default two a thread. With one thread everything happens
    in the caller's, one item at a time. The first error ends it; what has begun is waited for.
    """
    if threads <= 1:
        yield from map(function, items)
        return
    ahead = ahead or 2 * threads
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
