"""Ties the life of a process to that of its parent, so that a killed submit leaves nothing running."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from pathlib import Path
from types import FrameType

_PR_SET_PDEATHSIG = 1


class Interrupt:
    """Remembers that this process was asked to end, so that what must be finished is finished first."""

    def __init__(self) -> None:
        self.asked = False

    def listen(self) -> None:
        """Note SIGTERM from now on, and do nothing else about it."""
        signal.signal(signal.SIGTERM, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.asked = True


def die_with_parent(number: signal.Signals, parent: int | None = None) -> None:
    """Have the kernel send `number` to this process when its parent ends; Linux only.

    `parent` is the pid that the caller expects: when it is gone already, the signal is raised at once.

    Raises: OSError when the kernel refuses.
    """
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    if parent is not None and os.getppid() != parent:
        signal.raise_signal(number)


def began() -> float:
    """Unix time at which this process began, as the kernel counted it."""
    # Fields after the name, which is in parentheses and may hold anything; proc(5) counts the start as 22nd.
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age
