"""What a runner says while it runs: a line for its engine, or lines that people read in a pod's log."""

from __future__ import annotations

import json
import os
import sys
import time


def announce_to_engine(phase: str) -> None:
    """Tell the engine where the trial is. When the engine is gone, the trial still ends well."""
    try:
        print(json.dumps({"phase": phase}), flush=True)
    except BrokenPipeError:
        # The interpreter flushes once more at its end, and must not fail there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class PodLog:
    """Lines of a pod's log, each with the time since the runner began."""

    def __init__(self, began: float) -> None:
        """`began` is the Unix time of that."""
        self._began = began

    def say(self, text: str) -> None:
        print(f"{self._since()}  {text}", flush=True)

    def _since(self) -> str:
        seconds = time.time() - self._began
        return f"{int(seconds // 60):3d}m {seconds % 60:04.1f}s"
