"""The process in which Harbor runs: started by the runner for one try, with the granted environment only.

It reads its job from standard input, replaces its environment, imports Harbor, runs the trial, and leaves a
report. SIGTERM cancels the trial, which still collects what there is and stops its sandbox. It dies with the
runner.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from argo_harbor.runner.grants import harbor_environment, replace_environment
from argo_harbor.runner.job import PHASE_LINE, REPORT_FILE, TRIALS, Job, Report
from argo_harbor.runner.process import die_with_parent

if TYPE_CHECKING:
    from harbor.trial.trial import Trial


def main() -> int:
    die_with_parent(signal.SIGKILL)
    job = Job.from_json(sys.stdin.buffer.read())
    home = Path(job.work_dir) / "home"
    home.mkdir(exist_ok=True)
    replace_environment(harbor_environment(str(home), job.target_env, job.verifier_env))
    report = asyncio.run(_run(job))
    (Path(job.work_dir) / REPORT_FILE).write_bytes(report.canonical())
    return 0


async def _run(job: Job) -> Report:
    # Only here is the environment the granted one, and only this process pays for the import.
    from argo_harbor.runner import hooks
    from argo_harbor.runner.harbor_config import trial_config
    from argo_harbor.runner.policy import FixedPolicy
    from argo_harbor.runner.report import report_of, unusable
    from argo_harbor.runner.sandboxes import LocalSandboxes
    from argo_harbor.runner.session import Session, bind

    session = Session(
        part=job.part,
        task_dir=Path(job.task_dir),
        sandboxes=LocalSandboxes(
            job.sandbox, job.part, task_dir=Path(job.task_dir), work_dir=Path(job.work_dir)
        ),
        policy=FixedPolicy(job.sandbox.network, narrowed=job.part.rules.narrowed),
        announce=_announce,
    )
    bind(session)
    trial_dir = f"{TRIALS}/{job.trial_name}"
    try:
        trial = await _open(job, trial_config(job))
    except Exception as error:
        # Loading runs Harbor's whole validation, which raises whatever its models and agents raise.
        return unusable(error, trial_dir)
    _fill_agent_timeout(trial, job)
    hooks.attach(trial, session)
    cancelled = await _drive(trial)
    return report_of(trial, session, trial_dir=trial_dir, cancelled=cancelled)


async def _open(job: Job, config: object) -> Trial:
    from harbor.models.trial.config import TrialConfig
    from harbor.trial.trial import Trial

    from argo_harbor.runner.regrade import SeparateGrading

    if not isinstance(config, TrialConfig):
        raise TypeError("a trial needs Harbor's configuration")
    return await (SeparateGrading.open(config) if job.mode == "verify" else Trial.create(config))


def _fill_agent_timeout(trial: Trial, job: Job) -> None:
    """No step runs without a limit: one that names none takes the plan's."""
    steps = trial.task.config.steps or []
    for step in steps:
        planned = next((one for one in job.part.steps if one.name == step.name), None)
        if planned is not None:
            step.agent.timeout_sec = planned.timeouts.agent


async def _drive(trial: Trial) -> bool:
    """Run the trial to its end. Returns whether it was cancelled."""
    running = asyncio.ensure_future(trial.run())
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        return True
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
    return False


def _announce(phase: str) -> None:
    print(f"{PHASE_LINE}{phase}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
