"""Locks between the processes of one run on this machine: trials that want the same base build it once."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

_POLL_SECONDS = 0.1
"""Between two looks at a lock whose holder builds for seconds or minutes."""


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, waiting for it as long as it takes; a holder's death frees it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@asynccontextmanager
async def exclusive_async(path: Path) -> AsyncIterator[None]:
    """The same without blocking the loop; cancelling the wait leaves nothing behind."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(handle)
