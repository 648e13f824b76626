"""Turns a job into the configuration of one Harbor trial: our environment, our verifier, our clocks.

Nothing secret goes in: granted variables are `${NAME}` templates that Harbor resolves from its own
environment.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harbor.models.trial.config import (
    AgentConfig,
    EnvironmentConfig,
    SourceTrialConfig,
    TaskConfig,
    TrialConfig,
    VerifierConfig,
)

from argo_harbor.runner.job import MODEL_KEY_ENV, TRIALS, Job
from argo_harbor.runner.verifier import HARBOR_SLACK_SECONDS

ENVIRONMENT = "argo_harbor.runner.environment:SandboxEnvironment"
VERIFIER = "argo_harbor.runner.verifier:WatchedVerifier"


def trial_config(job: Job) -> TrialConfig:
    """The configuration of the trial, of its agent's half, or of the grading of a recorded one."""
    timeouts = job.part.timeouts
    return TrialConfig(
        task=TaskConfig(path=Path(job.task_dir)),
        trial_name=job.trial_name,
        trials_dir=Path(job.work_dir) / TRIALS,
        agent=_agent(job),
        environment=EnvironmentConfig(import_path=ENVIRONMENT),
        verifier=VerifierConfig(
            import_path=VERIFIER,
            # The longest of all steps: the planned clock of each one is our verifier's own.
            override_timeout_sec=timeouts.verifier + HARBOR_SLACK_SECONDS,
            env=_templates(job.verifier_env),
            disable=job.mode == "agent",
        ),
        source_trial=(
            SourceTrialConfig(action="regrade", type="local", path=Path(job.source_trial))
            if job.mode == "verify"
            else None
        ),
    )


def _agent(job: Job) -> AgentConfig:
    plan, timeouts = job.agent, job.part.timeouts
    model = plan.model
    qualified = f"{model.provider}/{model.model}" if model and model.provider else ""
    return AgentConfig(
        name=None if plan.import_path else plan.name,
        import_path=plan.import_path or None,
        model_name=qualified or (model.model if model else None),
        base_url=model.base_url if model else None,
        model_api_key_name=MODEL_KEY_ENV if job.model_key else None,
        override_setup_timeout_sec=timeouts.setup,
        # Steps have limits of their own, which one override would replace.
        override_timeout_sec=None if job.part.steps else timeouts.agent,
        kwargs=dict(plan.kwargs),
        env=_templates(job.target_env),
    )


def _templates(names: Iterable[str]) -> dict[str, str]:
    return {name: f"${{{name}}}" for name in names}
