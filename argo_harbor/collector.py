"""Python's cycle collector, paused where many objects are made and none is dropped.

Reading a thousand tasks otherwise spends a third of its time looking for cycles that are not there.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause it for the block; nested blocks and a caller that has paused it keep it so."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
