"""Starts runners: one process a try, in a session of its own, with nothing of the caller's environment.

The runner's output is read for phases; its standard input carries the granted variables.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from argo_harbor.interpreter import interpreter_environment

STOP_SECONDS = 8.5
"""From SIGTERM to SIGKILL; the runner's own grace for Harbor is shorter."""
COMPLAINT_BYTES = 2000


@dataclass(frozen=True, slots=True)
class TryArguments:
    """One try, as the runner's command line names it."""

    run: str
    plan: str
    index: int
    attempt: int
    try_: int
    uid: str


@dataclass(frozen=True, slots=True)
class Ended:
    status: int
    """Exit status; negative for a signal."""
    complaint: str
    """The end of what the runner wrote to its standard error."""


class Launcher:
    """Starts the runners of one run and ends them all."""

    def __init__(self, settings: Path, grants: bytes) -> None:
        self._settings = settings
        self._grants = grants
        self._running: set[asyncio.subprocess.Process] = set()

    @property
    def running(self) -> int:
        return len(self._running)

    async def run(
        self, mode: str, trial: TryArguments, *, deadline: float | None, on_phase: Callable[[str], None]
    ) -> Ended:
        """Run one try to its end.

        `mode` is `trial`, `agent` or `verify`; `deadline` a Unix time in seconds.
        """
        process = await asyncio.create_subprocess_exec(
            *self._command(mode, trial, deadline),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=interpreter_environment(os.environ),
            start_new_session=True,
        )
        self._running.add(process)
        try:
            if process.stdin is None or process.stdout is None or process.stderr is None:
                raise RuntimeError("the runner has no pipes")
            with suppress(ConnectionError):
                # A runner that died at once says why by its status.
                process.stdin.write(self._grants)
                await process.stdin.drain()
                process.stdin.close()
            complaints = asyncio.create_task(_tail(process.stderr))
            async for line in process.stdout:
                phase = _phase(line)
                if phase:
                    on_phase(phase)
            return Ended(await process.wait(), await complaints)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await asyncio.shield(process.wait())
            raise
        finally:
            self._running.discard(process)

    def _command(self, mode: str, trial: TryArguments, deadline: float | None) -> list[str]:
        command = [sys.executable, "-P", "-m", "argo_harbor.runner", mode]
        command += ["--plan", trial.plan, "--run", trial.run, "--task", str(trial.index)]
        command += ["--attempt", str(trial.attempt), "--try", str(trial.try_), "--uid", trial.uid]
        command += ["--settings", str(self._settings), "--grants", "/dev/stdin"]
        return command if deadline is None else [*command, "--deadline", repr(deadline)]

    async def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Ask every runner to end, and make it end after `seconds`."""
        self._signal(signal.SIGTERM)
        limit = asyncio.get_running_loop().time() + seconds
        while self._running and asyncio.get_running_loop().time() < limit:
            await asyncio.sleep(0.05)
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        for process in list(self._running):
            with suppress(ProcessLookupError):
                if number is signal.SIGKILL:
                    os.killpg(process.pid, number)
                else:
                    process.send_signal(number)


def _phase(line: bytes) -> str:
    try:
        said = json.loads(line)
    except ValueError:
        return ""
    return str(said.get("phase", "")) if isinstance(said, dict) else ""


async def _tail(stream: asyncio.StreamReader) -> str:
    kept = b""
    while chunk := await stream.read(65536):
        kept = (kept + chunk)[-COMPLAINT_BYTES:]
    return kept.decode(errors="replace").strip()
