"""How a command that entered a sandbox gets its input, and how it is ended."""

from __future__ import annotations

import asyncio
import os
import select
import signal
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

TERM_SECONDS = 2.0
"""Between SIGTERM and SIGKILL: a cancelled run must end within ten seconds."""


def in_memory(content: bytes) -> BinaryIO:
    """An open file without a name: what it holds shows up in no process list and on no disk."""
    handle = os.fdopen(os.memfd_create("entry", os.MFD_CLOEXEC), "w+b", buffering=0)
    handle.write(content)
    handle.seek(0)
    return handle


def wait_readable(handle: int, seconds: float) -> bool:
    """Whether a file descriptor has something to read, or has ended, within that time."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


async def end_command(process: asyncio.subprocess.Process) -> None:
    """End a command that entered: its process group, politely first, then by force."""
    for number, seconds in ((signal.SIGTERM, TERM_SECONDS), (signal.SIGKILL, TERM_SECONDS)):
        if process.returncode is not None:
            return
        for group in _groups_of_children(process.pid):
            with suppress(ProcessLookupError):
                os.killpg(group, number)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), seconds)
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()


def _groups_of_children(pid: int) -> list[int]:
    """Process groups of what nsenter started: the command's session is its own, so nsenter stays to
    report."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []
    groups = []
    for child in children:
        with suppress(ProcessLookupError):
            groups.append(os.getpgid(int(child)))
    return groups
