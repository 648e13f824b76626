"""Runs the machine's own tools, and turns their failure into a message that names the command."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.errors import ClusterError


def run(command: Sequence[str | Path], *, text: str | None = None, seconds: float = 120.0) -> str:
    """Return what the command prints; ``text`` becomes its standard input.

    Raises:
        ClusterError: it failed, hung, or is not there.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=seconds, check=False)
    except FileNotFoundError as missing:
        raise ClusterError(f"`{words[0]}` is not on PATH") from missing
    except subprocess.TimeoutExpired as late:
        raise ClusterError(f"`{' '.join(words)}` did not end within {seconds:.0f} s") from late
    if done.returncode:
        raise ClusterError(f"`{' '.join(words)}` failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def succeeds(command: Sequence[str | Path], *, seconds: float = 120.0) -> bool:
    """Whether the command ends with status 0."""
    try:
        run(command, seconds=seconds)
    except ClusterError:
        return False
    return True
