"""The child process in which Harbor will run, started before its job is known.

Importing Harbor takes longer than everything else that a trial needs before its agent, so it begins with the
runner itself and goes on while the plan and the task are fetched. For the same reason this module imports
next to nothing: `asyncio` is what its callers have by then.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from argo_harbor.interpreter import interpreter_environment
from argo_harbor.runner.workspace import workspace

LOG_FILE = "child.log"
CLEARING_SECONDS = 5.0
"""For a child that has reported to end by itself."""


class HarborProcess:
    """One child, from its start to its end. It dies with this process."""

    def __init__(self, work: Path) -> None:
        """`work` is the try's scratch folder, which the child's job must name."""
        self.work = work
        self._handed_over = False
        with (work / LOG_FILE).open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "argo_harbor.runner.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=interpreter_environment(os.environ),
                cwd=work,
            )

    async def hand_over(self, job: bytes) -> None:
        """Give the child its job. A child that died already leaves no report, which says so."""
        import asyncio

        self._handed_over = True
        await asyncio.to_thread(self._write, job)

    def _write(self, job: bytes) -> None:
        if self._process.stdin is None:
            raise RuntimeError("the child has no input")
        with suppress(BrokenPipeError):
            self._process.stdin.write(job)
            self._process.stdin.flush()
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    async def lines(self) -> AsyncIterator[str]:
        """What the child says, until it closes its output."""
        import asyncio

        if self._process.stdout is None:
            raise RuntimeError("the child has no output")
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), self._process.stdout
        )
        async for line in reader:
            yield line.decode(errors="replace").strip()

    async def wait(self) -> int:
        """Exit status, negative for a signal."""
        import asyncio

        return await asyncio.to_thread(self._process.wait)

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()

    def discard(self) -> None:
        """End a child that is not needed any more; one that had work to do may end by itself."""
        if self._handed_over:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(CLEARING_SECONDS)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


@contextmanager
def harbor_process(scratch: Path, name: str) -> Iterator[HarborProcess]:
    """A child in a new folder below `scratch`; both are gone afterwards."""
    with workspace(scratch, name) as work:
        child = HarborProcess(work)
        try:
            yield child
        finally:
            child.discard()
