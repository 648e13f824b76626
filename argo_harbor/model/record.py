"""What a trial leaves behind: `started.json` first, `trial.json` last, both in the try's folder of the store.

`trial.json` alone suffices for the merge. A separate verifier adds `agent.json` in between: what the agent's
half of the trial left for the verifier's half.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from argo_harbor.model.base import Model
from argo_harbor.model.states import Outcome

STARTED_SCHEMA: Final = "started-1"
TRIAL_SCHEMA: Final = "trial-1"
AGENT_SCHEMA: Final = "agent-1"

Timestamp = str
"""RFC 3339 in UTC with microseconds, as `2026-01-02T03:04:05.678901Z`."""

FINAL_ERRORS: dict[str, str] = {
    "agent_timeout": "the agent did not end in its time",
    "agent_exit_nonzero": "the agent's command ended with an error",
    "agent_setup_failed": "the agent could not be installed",
    "agent_crashed": "the agent ended with an error and left no reward",
    "agent_auth_failed": "the model's provider refused the credential",
    "model_unknown": "the model's provider does not know the model",
    "reward_missing": "the verifier left no reward file, or an empty one",
    "reward_invalid": "the reward file holds no finite number",
    "reward_key_missing": "the rewards lack the key that scores",
    "reward_tampered": "a reward file came back after it was read and removed",
    "verifier_timeout": "the verifier did not end in its time",
    "verifier_crashed": "the verifier could not be run",
    "healthcheck_failed": "the environment's healthcheck failed",
    "image_build_failed": "the task's image could not be built",
    "sandbox_failed": "the sandbox did not start or was lost",
    "sandbox_restarted": "the sandbox ended and came back empty",
    "policy_mismatch": "the network rules in force are not the planned ones",
    "task_unusable": "the task could not be loaded by the runner",
    "cancelled": "the run was cancelled",
    "expired": "the run's time budget was spent",
    "internal": "a fault of the runner itself",
}
"""Codes of `error.code` in a trial record, and what they mean."""


class AttemptRef(Model):
    """Which try of which attempt at which task."""

    run: str
    plan: str
    """Plan digest, 64 hex."""
    index: int = Field(ge=0)
    attempt: int = Field(ge=0)
    try_: int = Field(ge=0, alias="try")
    """0 for the first; a retry is the next try."""
    uid: str
    """Pod uid, or a random one on the local engine."""


class TrialStarted(Model):
    """`started.json`: a try has begun. Written before anything else."""

    schema_version: Literal["started-1"] = STARTED_SCHEMA
    ref: AttemptRef
    started_at: Timestamp
    node: str = ""
    workflow_uid: str = ""


class TrialError(Model):
    code: str
    """One of `FINAL_ERRORS`."""
    type: str = ""
    """Exception's name, where there was one."""
    message: str = Field(default="", max_length=8192)
    retryable: bool = False
    """Whether `max_retries` applies to it."""


class PhaseTime(Model):
    started_at: Timestamp
    finished_at: Timestamp = ""
    """Empty when the phase was cut off."""


class AppliedPolicy(Model):
    """The network rules that were in force in one phase."""

    mode: str
    """`none`, `hosts`, `public`, or `unfenced` where the host's network was shared."""
    digest: str
    """Of the applied whole; of the planned rules on the local engine."""
    narrowed: bool = False
    planned: str = ""
    """Digest of the planned rules, where the applied whole is more than these."""


class RefusedHost(Model):
    """A host that a sandbox asked for and did not get."""

    host: str
    """Name or address; `(others)` for those beyond the number that is told apart."""
    count: int
    """Refused lookups or connections; a lower bound."""


class Usage(Model):
    """Tokens and money of the agent's model calls; null where the agent reports none."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cache_read_tokens: int | None = None
    cost_usd: float | None = None


class StepResult(Model):
    name: str
    rewards: dict[str, float] | None = None
    error: TrialError | None = None


class ArtifactLink(Model):
    """A link that a sandbox left where artifacts are: listed, never followed."""

    path: str
    target: str


class RejectedReward(Model):
    key: str
    reason: str


class SandboxFacts(Model):
    """What the trial ran in, so that results of different ground are never mixed."""

    engine: Literal["local", "argo"]
    base: Literal["image", "preview"]
    network: str
    """`fenced`, `none`, `none (narrowed)` or `unfenced`."""
    image: str = ""
    image_digest: str = ""
    ignored_from: tuple[str, ...] = ()
    """FROM images that the preview base stood in for."""
    limits_enforced: bool = True
    """False on the local engine: cpu, memory and storage are not limited there."""


class TrialRecord(Model):
    """`trial.json`: everything about one try."""

    schema_version: Literal["trial-1"] = TRIAL_SCHEMA
    ref: AttemptRef
    task_name: str
    task_digest: str
    final: bool
    """True when this try decides its attempt; false when a further try shall run."""
    outcome: Outcome
    error: TrialError | None = None
    rewards: dict[str, float] | None = None
    reward_key: str
    rejected: tuple[RejectedReward, ...] = ()
    steps: tuple[StepResult, ...] = ()
    agent_name: str
    agent_version: str = ""
    model: str = ""
    started_at: Timestamp
    finished_at: Timestamp
    phases: dict[str, PhaseTime] = Field(default_factory=dict)
    """Keys: `sandbox`, `setup`, `agent`, `verifier`, `collect`."""
    overhead_seconds: dict[str, float] = Field(default_factory=dict)
    """Our own time: `before_agent`, from the runner's start to the agent's without the agent's setup, and
    `after_verifier`, from the last grading to this record."""
    usage: Usage = Usage()
    policies: dict[str, AppliedPolicy] = Field(default_factory=dict)
    """Keys: `setup`, `agent`, `verifier`."""
    refused: dict[str, tuple[RefusedHost, ...]] = Field(default_factory=dict)
    """Hosts refused in each phase, the most frequent first; keys as of `policies`, `before` for the time
    before the first and `deny` for that between phases. Always empty on the local engine."""
    opened_for_grading: tuple[str, ...] = ()
    sandbox: SandboxFacts
    links: tuple[ArtifactLink, ...] = ()
    files: tuple[str, ...] = ()
    """Evidence of this try, relative to its folder, sorted."""
    node: str = ""


class AgentHalf(Model):
    """`agent.json`: the agent's half of a trial with a separate verifier."""

    schema_version: Literal["agent-1"] = AGENT_SCHEMA
    record: TrialRecord
    """The record as it stands before grading; its outcome is final only when `gradable` is false."""
    gradable: bool
    """Whether the verifier may run: the agent ran, whether or not it ended well."""
    trial_dir: str
    """Folder of Harbor's trial files, relative to the try's folder."""
