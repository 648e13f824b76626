"""How often and how long a request to the store's server is repeated before it counts as failed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass


class Fault(Exception):
    """One request that went wrong, in the store's own terms; stores turn it into a PlatformError.

    `code` is S3's name of the error, or one of ours for what never came to an answer.
    """

    def __init__(
        self, code: str, detail: str, *, status: int = 0, retryable: bool = False, wait: float = 0.0
    ) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.status = status
        """Of the HTTP answer; 0 without one."""
        self.retryable = retryable
        self.wait = wait
        """Seconds that the server asked to wait; 0 when it did not."""


@dataclass(frozen=True, slots=True)
class Patience:
    """The budget of one operation."""

    attempts: int = 10
    first: float = 0.2
    """Seconds before the second attempt; doubled for each later one, each time with full jitter."""
    longest: float = 15.0
    """Seconds: the most between two attempts, also where the server asks for more."""
    total: float = 180.0
    """Seconds after which no new attempt begins."""


FOR_PEOPLE = Patience(attempts=5, total=20.0)
"""Of a command that somebody waits for."""
FOR_PODS = Patience()
"""Of a pod, whose trial is lost when it gives up: enough for a server that restarts."""


def persist[T](action: Callable[[], T], patience: Patience) -> T:
    """What `action` returns, tried again after each retryable Fault until the budget is spent.

    Raises the last Fault.
    """
    begin = time.monotonic()
    for attempt in range(1, patience.attempts):
        try:
            return action()
        except Fault as fault:
            pause = pause_after(fault, attempt, patience)
            if not fault.retryable or time.monotonic() - begin + pause > patience.total:
                raise
        time.sleep(pause)
    return action()


def pause_after(fault: Fault, attempt: int, patience: Patience) -> float:
    """Seconds to wait after the `attempt`-th attempt, from 1. Jitter keeps many pods from coming at once."""
    exponential = min(patience.longest, patience.first * 2 ** (attempt - 1))
    return max(random.uniform(exponential / 2, exponential), min(fault.wait, patience.longest))
