"""Drives one Harbor trial from a job to a report: what the child does once it has its job.

The only module of the child that imports Harbor at the top, since all of it is needed.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from harbor.models.trial.config import TrialConfig
from harbor.trial.multi_step import MultiStepTrial
from harbor.trial.single_step import SingleStepTrial
from harbor.trial.trial import Trial

from argo_harbor.model.runner import PodSandboxSettings
from argo_harbor.runner import hooks
from argo_harbor.runner.harbor_config import trial_config
from argo_harbor.runner.job import TRIALS, Job, Report
from argo_harbor.runner.policy import FixedPolicy, PhasePolicy
from argo_harbor.runner.regrade import SeparateGrading
from argo_harbor.runner.report import report_of, unusable
from argo_harbor.runner.session import SandboxFactory, Session, bind

READY = (SingleStepTrial, MultiStepTrial)
"""Imported here and not when Harbor first asks for them."""


async def run(job: Job, announce: Callable[[str], None]) -> Report:
    """Run the job's trial. `announce` is told of each phase."""
    async with AsyncExitStack() as stack:
        sandboxes, policy = await _ground(job, stack)
        session = Session(
            part=job.part,
            task_dir=Path(job.task_dir),
            sandboxes=sandboxes,
            policy=policy,
            announce=announce,
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


async def _ground(job: Job, stack: AsyncExitStack) -> tuple[SandboxFactory, PhasePolicy]:
    """What the trial's sandboxes are made by, and what fences them."""
    if isinstance(job.sandbox, PodSandboxSettings):
        from argo_harbor.runner.pod_ground import pod_ground

        return await pod_ground(job.sandbox, job.part, stack)
    from argo_harbor.runner.sandboxes import LocalSandboxes

    local = LocalSandboxes(job.sandbox, job.part, task_dir=Path(job.task_dir), work_dir=Path(job.work_dir))
    return local, FixedPolicy(job.sandbox.network, narrowed=job.part.rules.narrowed)


async def _open(job: Job, config: TrialConfig) -> Trial:
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
