"""Which kind of try the command line asks for."""

from __future__ import annotations

from argo_harbor.runner.bench import Bench
from argo_harbor.runner.grading import run_grading
from argo_harbor.runner.trial import run_trial


def run_try(bench: Bench) -> int:
    """Run it. The exit status.

    Raises: PlatformError `plan_unreadable`, `run_id_reused`, `store_write_failed`, `store_unreadable`.
    """
    return run_grading(bench) if bench.command.mode == "verify" else run_trial(bench)
