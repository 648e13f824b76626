"""Runs Harbor's child process and keeps the clocks that Harbor does not: the trial's own and the run's.

The child is asked to end with SIGTERM and made to with SIGKILL; its sandboxes die with it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from argo_harbor.runner.harbor_process import LOG_FILE, HarborProcess
from argo_harbor.runner.job import PHASE_LINE, REPORT_FILE, Job, Report
from argo_harbor.runner.outcome import Stop
from argo_harbor.runner.process import Interrupt

GRACE_SECONDS = 6.0
"""For a cancelled child to collect its logs and stop its sandbox: a run must end within ten seconds."""
LOG_TAIL = 2000
"""Bytes of the child's last words in an error message."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How the child ended."""

    report: Report | None
    stop: Stop = ""
    detail: str = ""


async def run_child(
    child: HarborProcess,
    job: Job,
    *,
    outer_seconds: float,
    run_deadline: float | None,
    on_phase: Callable[[str], None],
    interrupt: Interrupt,
    grace: float = GRACE_SECONDS,
) -> Ended:
    """Have the child run one job to its end. SIGTERM of this process cancels it, also one that came before.

    `run_deadline` is a Unix time in seconds; `outer_seconds` counts from now. When this returns the child
    has reported, and may still be clearing up.
    """
    work = Path(job.work_dir)
    limit, reason = _first_clock(outer_seconds, run_deadline)
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, asked.set)
    if interrupt.asked:
        asked.set()
    stop: Stop = ""
    try:
        talking = asyncio.create_task(_talk(child, job, on_phase))
        stopping = asyncio.create_task(asked.wait())
        await asyncio.wait({talking, stopping}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        if not talking.done():
            stop = "cancelled" if asked.is_set() else reason
            await _end(child, talking, grace)
        stopping.cancel()
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        interrupt.listen()
    report = _read(work)
    if report is None and not stop:
        return Ended(None, "died", _last_words(work, await child.wait()))
    if report is not None and report.cancelled and not stop:
        stop = "cancelled"
    return Ended(report, stop)


def _first_clock(outer_seconds: float, run_deadline: float | None) -> tuple[float, Stop]:
    if run_deadline is not None and run_deadline - time.time() < outer_seconds:
        return max(run_deadline - time.time(), 0.0), "expired"
    return outer_seconds, "deadline"


async def _talk(child: HarborProcess, job: Job, on_phase: Callable[[str], None]) -> None:
    """Hand over the job and pass on phases until the child closes its output."""
    await child.hand_over(job.canonical())
    async for line in child.lines():
        if line.startswith(PHASE_LINE):
            on_phase(line.removeprefix(PHASE_LINE))


async def _end(child: HarborProcess, talking: asyncio.Task[None], grace: float) -> None:
    child.terminate()
    done, _ = await asyncio.wait({talking}, timeout=grace)
    if not done:
        child.kill()
        await asyncio.wait({talking}, timeout=GRACE_SECONDS)
        talking.cancel()


def _read(work: Path) -> Report | None:
    with suppress(FileNotFoundError, ValidationError):
        return Report.from_json((work / REPORT_FILE).read_bytes())
    return None


def _last_words(work: Path, status: int) -> str:
    with (work / LOG_FILE).open("rb") as log:
        log.seek(max(0, os.fstat(log.fileno()).st_size - LOG_TAIL))
        said = log.read().decode(errors="replace").strip()
    return f"the process that ran Harbor ended with status {status}: {said}"
