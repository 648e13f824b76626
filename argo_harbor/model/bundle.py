"""The result bundle: every file and row of `agent-eval-results/`, as other tools read them.

Field names, nulls and the string token for NaN follow the bundle that NeMo's agent evaluation writes
(`run.json`, `metadata.json`, `tasks.jsonl`, `trials.jsonl`, `scores.jsonl`, `summary.json`). What is ours
stands only where that format is open: in `labels`, in `target.config["argo_harbor"]` (`RunFacts`), in the
`metadata` of tasks and trials, and in files of our own (`manifest.json`, `evidence/`).
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from argo_harbor.model.base import Model
from argo_harbor.model.record import AppliedPolicy, PhaseTime, SandboxFacts, StepResult, Timestamp
from argo_harbor.model.states import Outcome, RunPhase, TaskPhase, TrialStatus

METRIC: Final = "harbor_reward"
"""Type of the only metric: the reward that Harbor's verifier left."""

RUN_FILE: Final = "run.json"
METADATA_FILE: Final = "metadata.json"
TASKS_FILE: Final = "tasks.jsonl"
TRIALS_FILE: Final = "trials.jsonl"
SCORES_FILE: Final = "scores.jsonl"
SUMMARY_FILE: Final = "summary.json"
REPORT_FILE: Final = "report.html"
MANIFEST_FILE: Final = "manifest.json"
EVIDENCE: Final = "evidence/harbor"

Number = float | Literal["NaN"]
"""A number, or the token that stands for "no number" since JSON has none."""
Ref = Annotated[str, StringConstraints(min_length=1)]
"""Path relative to the bundle's folder, `/`-separated, never leaving it."""


class RunArtifacts(Model):
    """File names, relative to the bundle."""

    metadata: str = METADATA_FILE
    tasks: str = TASKS_FILE
    trials: str = TRIALS_FILE
    scores: str = SCORES_FILE
    summary: str = SUMMARY_FILE


class RunFile(Model):
    """`run.json`, written last: a bundle without it is not whole."""

    run_id: str
    output_dir: str = "."
    """The bundle's folder as seen from this file, so that a copied bundle stays right."""
    dashboard_path: str | None = REPORT_FILE
    artifacts: RunArtifacts = RunArtifacts()


class Interval(Model):
    """A confidence interval of a share."""

    method: Literal["wilson"] = "wilson"
    confidence: float = 0.95
    low: float = Field(ge=0, le=1)
    high: float = Field(ge=0, le=1)
    tasks: int = Field(ge=1)
    """Sample size: tasks, since attempts at one task are not independent."""


class MissingAttempt(Model):
    """A planned attempt without a deciding record."""

    attempt: int = Field(ge=0)
    code: str
    """`not_started`, `trial_lost`, `image_build_failed`, `cancelled`, `expired`, a trial error's code, or the
    code that a skipped task was refused with."""
    cause: str
    """What is known about it, in a sentence."""
    tries: int = Field(default=0, ge=0)
    """Tries that started; none of them decides."""


class MissingTask(Model):
    """A task with at least one missing attempt."""

    index: int = Field(ge=0)
    task: str
    attempts: tuple[MissingAttempt, ...]


class Problem(Model):
    """Something about records or files that a reader of the results should know."""

    code: str
    message: str


class CoverageCounts(Model):
    """Attempts: `total` = `scored` + `failed` + `missing`."""

    total: int = Field(ge=0)
    scored: int = Field(ge=0)
    failed: int = Field(ge=0)
    missing: int = Field(ge=0)


class RunFacts(Model):
    """Ours, as `target.config["argo_harbor"]`: what the results stand on."""

    schema_version: Literal["run-facts-1"] = "run-facts-1"
    engine: str
    bases: tuple[str, ...]
    """`image` or `preview`; sorted, empty when no trial left a record."""
    networks: tuple[str, ...]
    """`fenced`, `none`, `none (narrowed)`, `unfenced`; sorted."""
    profile: str
    plan_digest: str
    taskset_ref: str
    taskset_total: int
    phase: RunPhase
    parent: str
    """The run that this one completes; empty without one."""
    planned_attempts: int
    coverage: CoverageCounts
    missing: tuple[MissingTask, ...]
    intervals: dict[str, Interval]
    """By the name of a score in `summary.json`."""
    problems: tuple[Problem, ...]
    """Records that were left out, and evidence that was not there."""


class Target(Model):
    name: str
    kind: Literal["runner", "model", "agent", "imported"] = "agent"
    version: str | None
    config: dict[str, Any]
    """Of a Harbor run: `agent_name`, `agent_import_path`, `agent_model_name`, `agent_kwargs`, `env_secrets`,
    `env_vars`, `effective_agent`, `n_attempts`, `job_dir`, `jobs_dir`, `job_name`, `reward_key`, and
    `argo_harbor`."""


class Metadata(Model):
    """`metadata.json`."""

    labels: dict[str, str]
    target: Target | None
    started_at: str | None
    finished_at: str | None
    duration_sec: float | None
    sdk_version: str


class MetricOutput(Model):
    name: str
    description: str
    value_schema: dict[str, Any]
    required: bool = True


class Metric(Model):
    type: str
    outputs: tuple[MetricOutput, ...]


class Signal(Model):
    metric: str
    output: str
    weight: float = 1.0


class View(Model):
    reducer: Literal["single", "all", "any", "mean", "weighted_mean"]
    signals: tuple[Signal, ...]


class TaskMetadata(Model):
    """Ours."""

    index: int = Field(ge=0)
    phase: TaskPhase
    digest: str
    """Content digest of the task, 64 hex; empty when no trial left a record."""
    planned_attempts: int
    missing: tuple[MissingAttempt, ...]


class TaskRow(Model):
    """A line of `tasks.jsonl`: one planned task, run or not."""

    id: str
    intent: str
    inputs: dict[str, Any]
    """`instruction` is null: the text stays in the task's archive."""
    reference: dict[str, Any]
    metrics: tuple[Metric, ...]
    views: dict[str, View]
    metadata: TaskMetadata


class Evidence(Model):
    kind: str
    ref: Ref | None
    format: str | None = None
    data: Any = None
    description: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class EvidenceSet(Model):
    descriptors: dict[str, Evidence]
    metadata: dict[str, Any] = Field(default_factory=dict)
    """`links`: links that the sandbox left among its artifacts; listed, never followed."""


class TrialOutput(Model):
    output_text: str | None = None
    response: Any = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class ErrorRow(Model):
    type: str
    """The error's code; the exception's name, where there was one, is in the trial's metadata."""
    message: str
    traceback: str | None = None
    occurred_at: str | None = None


class Measurements(Model):
    prompt_tokens: int | None
    completion_tokens: int | None
    total_tokens: int | None
    cache_creation_tokens: int | None = None
    cache_read_tokens: int | None
    runtime_sec: float | None
    cost_usd: float | None


class TrialAgent(Model):
    name: str
    version: str
    model: str


class TrialFactsRow(Model):
    """Ours, in a trial's metadata: which try this is, what it ran in, and when."""

    index: int
    attempt: int
    try_: int = Field(alias="try")
    tries: int
    """Tries that started; this one decides."""
    pod_uid: str
    node: str
    outcome: Outcome
    final: bool
    error_type: str
    """Name of the exception, where there was one."""
    task_digest: str
    started_at: Timestamp
    finished_at: Timestamp
    agent: TrialAgent
    sandbox: SandboxFacts
    policies: dict[str, AppliedPolicy]
    opened_for_grading: tuple[str, ...]
    phases: dict[str, PhaseTime]
    overhead_seconds: dict[str, float]
    steps: tuple[StepResult, ...]


class TrialMetadata(Model):
    harbor_primary_reward_key: str | None
    reward: float | None
    reward_details: dict[str, float]
    reward_rejections: dict[str, str]
    reward_entry_rejections: tuple[str, ...] = ()
    harbor_trial_dir: str | None
    argo_harbor: TrialFactsRow


class TrialRow(Model):
    """A line of `trials.jsonl`: one attempt with a deciding record."""

    id: str
    """`<task>__<attempt>`."""
    task_id: str
    status: TrialStatus
    output: TrialOutput
    evidence: EvidenceSet
    error: ErrorRow | None
    measurements: Measurements
    metadata: TrialMetadata


Trial = TrialRow
"""What `read_trials` returns."""


class ScoreOutput(Model):
    name: str
    value: Number


class Diagnostic(Model):
    severity: Literal["info", "warning", "error"]
    message: str
    source: str
    details: dict[str, Any] = Field(default_factory=dict)


class ScoreRow(Model):
    """A line of `scores.jsonl`: one metric of one trial; no outputs unless it was scored."""

    id: str
    """`<run>:<task>:<trial>:<metric>`."""
    run_id: str
    task_id: str
    trial_id: str
    metric_type: str = METRIC
    status: Literal["completed", "failed"]
    outputs: tuple[ScoreOutput, ...]
    diagnostics: tuple[Diagnostic, ...]
    metadata: dict[str, Any]
    """`row_index` and `trial_metadata`."""


class HistogramBin(Model):
    lower_bound: float
    upper_bound: float
    count: int


class Histogram(Model):
    bins: tuple[HistogramBin, ...]


class Percentiles(Model):
    p10: Number
    p20: Number
    p30: Number
    p40: Number
    p50: Number
    p60: Number
    p70: Number
    p80: Number
    p90: Number
    p100: Number


class Score(Model):
    """A rollup: `<metric>.<output>`, `<metric>.<output>.pass@k` or `runner.harbor.<measurement>`."""

    name: str
    score_type: Literal["range", "rubric", "scalar"] = "range"
    count: int
    nan_count: int
    """Planned values that are not there: failed or missing."""
    sum: Number
    mean: Number
    min: Number
    max: Number
    median: Number
    std_dev: Number
    variance: Number
    sample_std_dev: Number
    sample_variance: Number
    percentiles: Percentiles
    histogram: Histogram


class Scores(Model):
    scores: tuple[Score, ...]


class TaskMetricValue(Model):
    trial_id: str
    value_type: Literal["number", "label", "missing"]
    value: float | str | None


class Summary(Model):
    """`summary.json`."""

    scores: Scores
    metric_coverage: dict[str, dict[str, CoverageCounts]]
    task_metric_values: dict[str, dict[str, tuple[TaskMetricValue, ...]]]
    error_trial_ids: dict[str, tuple[str, ...]]
    """By error code."""
    task_count: int
    trial_count: int
    score_count: int
    error_count: int


class ManifestEntry(Model):
    path: Ref
    size: int = Field(ge=0)
    """Bytes."""
    sha256: str


class Manifest(Model):
    """`manifest.json`: every file of the bundle but itself and `run.json`, sorted by path."""

    schema_version: Literal["manifest-1"] = "manifest-1"
    run_id: str
    files: tuple[ManifestEntry, ...]
