"""The process in which Harbor runs: started by the runner for one try, with the granted environment only.

It replaces its environment, imports Harbor, reads its job from standard input, runs the trial, and leaves a
report. SIGTERM cancels the trial, which still collects what there is and stops its sandbox. It dies with the
runner.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from argo_harbor.runner.grants import harbor_environment, replace_environment
from argo_harbor.runner.job import PHASE_LINE, REPORT_FILE, Job
from argo_harbor.runner.process import die_with_parent


def main() -> int:
    die_with_parent(signal.SIGKILL)
    home = Path.cwd() / "home"
    home.mkdir(exist_ok=True)
    base = harbor_environment(str(home))
    replace_environment(base)
    # Harbor is imported while the runner still looks for the job. Only this process pays for it.
    from argo_harbor.runner import drive

    job = Job.from_json(sys.stdin.buffer.read())
    replace_environment(base | job.granted())
    report = asyncio.run(drive.run(job, _announce))
    (Path(job.work_dir) / REPORT_FILE).write_bytes(report.canonical())
    # The runner goes on from here, while the interpreter clears up.
    sys.stdout.flush()
    os.close(sys.stdout.fileno())
    # The interpreter's own word for: nowhere to write to.
    sys.stdout = None
    return 0


def _announce(phase: str) -> None:
    print(f"{PHASE_LINE}{phase}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
