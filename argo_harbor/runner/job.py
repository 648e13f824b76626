"""What passes between the runner and the child process in which Harbor runs.

The runner writes a `Job` to the child's standard input, reads phase lines from its standard output, and
finds a `Report` in the scratch folder when the child has ended. Granted values are in the job only: they
are on no command line and in no file.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from argo_harbor.model.base import Model
from argo_harbor.model.plan import AgentPlan, TaskPlan
from argo_harbor.model.record import (
    AppliedPolicy,
    ArtifactLink,
    PhaseTime,
    RefusedHost,
    RejectedReward,
    Usage,
)
from argo_harbor.model.runner import PodSandboxSettings, SandboxSettings
from argo_harbor.runner.command import Mode

REPORT_FILE = "report.json"
TRIALS = "trials"
"""Where Harbor puts its trials, relative to the work folder."""
MODEL_KEY_ENV = "ARGO_HARBOR_MODEL_KEY"
"""Variable in which Harbor finds the model's credential."""
GRADED = "graded"
"""Announced like a phase when the last files of a grading have arrived; what follows is our own checking."""
PHASE_LINE = "phase "
"""Prefix of the child's standard output lines that announce a phase."""


class Job(Model):
    """Everything that the child needs to run one try."""

    mode: Mode
    part: TaskPlan
    agent: AgentPlan
    sandbox: SandboxSettings | PodSandboxSettings = Field(discriminator="kind")
    task_dir: str
    """The unpacked task."""
    work_dir: str
    """Scratch folder of this try."""
    trial_name: str
    source_trial: str = ""
    """For `verify`: Harbor's folder of the agent's half."""
    target_env: dict[str, str] = Field(default_factory=dict)
    """Granted variables of the agent phase, with their values."""
    verifier_env: dict[str, str] = Field(default_factory=dict)
    model_key: str = ""
    """Credential for the model that the agent calls, where the platform holds one."""

    def granted(self) -> dict[str, str]:
        """What the child's environment holds besides its own."""
        key = {MODEL_KEY_ENV: self.model_key} if self.model_key else {}
        return {**self.target_env, **self.verifier_env, **key}


class ReportedFailure(Model):
    type: str
    message: str
    phase: Literal["sandbox", "setup", "agent", "collect", "verifier"]
    cause: str = ""


class ReportedGrading(Model):
    step: str = ""
    read: bool = False
    """Whether the reward files were looked at."""
    rewards: dict[str, float] | None = None
    problem: Literal["", "reward_missing", "reward_invalid", "reward_tampered"] = ""
    detail: str = ""
    rejected: tuple[RejectedReward, ...] = ()
    failure: ReportedFailure | None = None


class Report(Model):
    """What the child saw."""

    created: bool
    """False when Harbor could not load the task; `unusable` says why."""
    unusable: str = ""
    cancelled: bool = False
    phase: Literal["sandbox", "setup", "agent", "collect", "verifier"] = "sandbox"
    failure: ReportedFailure | None = None
    gradings: tuple[ReportedGrading, ...] = ()
    multi_step: bool = False
    final_step_only: bool = False
    tampered: str = ""
    policy_mismatch: str = ""
    gradable: bool = False
    """Whether Harbor would have gone on to grading: the agent ran, whether or not it ended well."""
    agent_version: str = ""
    phases: dict[str, PhaseTime] = Field(default_factory=dict)
    policies: dict[str, AppliedPolicy] = Field(default_factory=dict)
    usage: Usage = Usage()
    links: tuple[ArtifactLink, ...] = ()
    refused: dict[str, tuple[RefusedHost, ...]] = Field(default_factory=dict)
    ignored_from: tuple[str, ...] = ()
    image_digest: str = ""
    graded_at: str = ""
    """When the last grading had been read."""
    trial_dir: str
    """Harbor's folder, relative to the work folder."""
