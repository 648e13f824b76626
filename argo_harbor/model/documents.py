"""The JSON documents that commands print with `--json`: one model each, so that every one has a schema.

The command line fills and prints them; scripts read them. Fields are only ever added.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol, Self

from pydantic import Field

from argo_harbor.errors import HarborError
from argo_harbor.model.base import Model
from argo_harbor.model.bundle import CoverageCounts, Problem, Summary
from argo_harbor.model.plan import NetworkRules, PhaseRules, RunPlan, SandboxResources, Skipped, TaskEntry
from argo_harbor.model.profile import Profile
from argo_harbor.model.record import TrialError
from argo_harbor.model.states import Outcome, ResultState, RunPhase, TaskPhase


class _Described(Protocol):
    def as_json(self) -> dict[str, str]: ...


class Item(Model):
    """One finding or warning: where, what, and what cures it. Fields that do not apply are empty."""

    task: str = ""
    file: str = ""
    key: str = ""
    code: str
    message: str
    hint: str = ""

    @classmethod
    def each(cls, found: Iterable[_Described]) -> tuple[Self, ...]:
        """From `Finding` or `Warned`."""
        return tuple(cls(**item.as_json()) for item in found)


class RunInfo(Model):
    """One run, as `runs submit`, `status`, `info` and `list` show it."""

    id: str
    phase: RunPhase
    result_state: ResultState
    taskset_ref: str
    """`name#digest`."""
    plan_digest: str
    """64 hex."""
    engine: Literal["local", "argo"]
    profile: str
    base: Literal["image", "preview"] | None = None
    """What sandboxes stand on; null until the first trial has said so."""
    bundle_dir: str | None = None
    """Where the merged results lie: an absolute folder or a URL; null until they are there."""
    user: str = ""
    """Who submitted it; empty where that is not known."""
    submitted_at: str = ""
    """RFC 3339; empty where that is not known."""


class RunDocument(Model):
    """`runs submit`, `runs status`, `runs info`, `runs merge`."""

    run: RunInfo
    counts: dict[TaskPhase, int]
    """Tasks by phase; phases without a task may be absent."""
    warnings: tuple[Item, ...] = ()


class RunsDocument(Model):
    """`runs list`, newest first."""

    runs: tuple[RunInfo, ...]


class TrialLine(Model):
    """One attempt at a task: its deciding try, or the latest while none has decided."""

    attempt: int = Field(ge=0)
    try_: int = Field(ge=0, alias="try")
    outcome: Outcome | None
    """Null while it runs, and for an attempt that left no record."""
    rewards: dict[str, float] | None
    error: TrialError | None


class TaskLine(Model):
    index: int = Field(ge=0)
    name: str
    phase: TaskPhase
    detail: str = ""
    """Why it is where it is: `agent`, `verifier`, a refusal's code, the scheduler's reason."""
    trials: tuple[TrialLine, ...]


class TasksDocument(Model):
    """`runs tasks`, by index."""

    tasks: tuple[TaskLine, ...]


class TaskResultSummary(Model):
    trial_count: int = Field(ge=0)
    """Attempts with a deciding record."""
    coverage: CoverageCounts
    mean: float | None
    """Of the scored attempts' reward; null when none is scored."""


class TaskResult(Model):
    summary: TaskResultSummary


class TaskResultLine(TaskLine):
    result: TaskResult


class RunResult(Model):
    coverage: CoverageCounts
    summary: Summary
    """As in the bundle's `summary.json`, computed from the records that are there now."""
    bundle_ref: str | None
    """Folder or URL of the bundle; null before the merge."""


class ResultsDocument(Model):
    """`runs results`."""

    run: RunInfo
    tasks: tuple[TaskResultLine, ...]
    result: RunResult


class TaskImages(Model):
    agent: str
    verifier: str | None
    """Null when grading happens in the agent's sandbox."""


class TaskNetwork(Model):
    asked: Literal["no-network", "allowlist", "public"]
    narrowed: bool
    setup: PhaseRules
    agent: PhaseRules
    verifier: PhaseRules

    @classmethod
    def of(cls, rules: NetworkRules) -> Self:
        return cls(
            asked=rules.asked,
            narrowed=rules.narrowed,
            setup=rules.setup,
            agent=rules.agent,
            verifier=rules.verifier,
        )


class CompiledTask(Model):
    """One task of a plan; a skipped one has only `index`, `name` and the reason."""

    index: int = Field(ge=0)
    name: str
    dag_name: str
    images: TaskImages | None
    network: TaskNetwork | None
    resources: SandboxResources | None
    skipped: Skipped | None = None

    @classmethod
    def of(cls, plan: RunPlan, entry: TaskEntry) -> Self:
        if entry.skipped is not None:
            return cls(
                index=entry.index,
                name=entry.name,
                dag_name="",
                images=None,
                network=None,
                resources=None,
                skipped=entry.skipped,
            )
        part = plan.part(entry.index)
        verifier = part.images.verifier
        return cls(
            index=entry.index,
            name=entry.name,
            dag_name=entry.dag_name,
            images=TaskImages(
                agent=part.images.agent.reference, verifier=verifier.reference if verifier else None
            ),
            network=TaskNetwork.of(part.rules),
            resources=part.resources,
        )


class CompileDocument(Model):
    """`compile`."""

    plan_digest: str
    taskset_ref: str
    files: tuple[str, ...]
    """Written files, relative to the output folder."""
    tasks: tuple[CompiledTask, ...]
    warnings: tuple[Item, ...] = ()

    @classmethod
    def of(cls, plan: RunPlan, *, files: Iterable[str], warnings: Iterable[_Described] = ()) -> Self:
        return cls(
            plan_digest=plan.digest,
            taskset_ref=plan.head.taskset.ref,
            files=tuple(files),
            tasks=tuple(CompiledTask.of(plan, entry) for entry in plan.head.tasks),
            warnings=Item.each(warnings),
        )


class ListedTask(Model):
    index: int = Field(ge=0)
    name: str


class TaskListDocument(Model):
    """`--list-tasks`."""

    taskset_ref: str
    source: str = ""
    """The remote source, pinned; empty for a folder."""
    tasks: tuple[ListedTask, ...]
    warnings: tuple[Item, ...] = ()


class TasksetTask(Model):
    """One task of a taskset by index, name and content digest (64 hex)."""

    index: int = Field(ge=0)
    name: str
    digest: str


class PublishedTaskLine(TasksetTask):
    state: Literal["published", "unchanged"]


class TasksetCreateDocument(Model):
    """`tasksets create`."""

    taskset_ref: str
    name: str
    digest: str
    total: int = Field(ge=0)
    """Tasks of the whole suite."""
    state: Literal["published", "unchanged"]
    """`unchanged` when the taskset and every selected task were in the store."""
    tasks: tuple[PublishedTaskLine, ...]
    """The selected ones, by index."""
    published: int = Field(ge=0)
    """Tasks that were missing, or damaged and replaced."""
    unchanged: int = Field(ge=0)
    source: str
    """The remote source, pinned; empty for a folder."""
    intake_dataset: str
    """Value of `--intake-dataset`: name and version of the source, for a folder of the taskset."""
    warnings: tuple[Item, ...] = ()


class TasksetLine(Model):
    """One published taskset."""

    taskset_ref: str
    name: str
    digest: str
    total: int | None
    """Tasks of the whole suite; null when the manifest is broken."""
    in_store: int = Field(ge=0)
    """Tasks whose archive is in the store."""
    published_at: str
    """RFC 3339: when the manifest was written."""
    source: str
    intake_dataset: str
    """Both as in `tasksets create`; empty when the manifest is broken."""
    problem: str = ""
    """Why it cannot be used; empty otherwise."""
    hint: str = ""


class TasksetsDocument(Model):
    """`tasksets list`, newest first."""

    tasksets: tuple[TasksetLine, ...]


class ImageInfo(Model):
    """One image that tasks of a taskset need built."""

    key: str
    """Image key, 64 hex."""
    reference: str
    digest: str = ""
    """`sha256:…`, as far as a build has told."""
    state: Literal["ready", "failed", "building", "pending", "missing"]
    """`pending`: started, and waiting. `missing`: nobody has built it."""
    detail: str = ""
    """What it waits for."""
    tasks: tuple[str, ...]
    code: str = ""
    """Why its last build failed; `step` and `message` say where, and what was said last."""
    step: str = ""
    message: str = ""
    bases: dict[str, str] = Field(default_factory=dict)
    """Digests of its base images by name."""
    seconds: float = 0.0
    """Of its last build."""


class StoredTaskLine(TasksetTask):
    in_store: bool
    bytes: int | None
    """Size of the archive; null when it is not there."""


class TasksetDocument(TasksetLine):
    """`tasksets show`."""

    tasks: tuple[StoredTaskLine, ...]
    """Of the whole suite, by index."""
    images: tuple[ImageInfo, ...] = ()
    """What has to be built for the tasks in the store; only with `--images`."""
    skipped: tuple[Item, ...] = ()
    """Tasks in the store that have no image, and why; only with `--images`."""


class BuildImagesDocument(Model):
    """`tasksets build-images`."""

    taskset_ref: str
    engine: Literal["local", "argo"]
    workflows: tuple[str, ...] = ()
    """Workflows that build, those of earlier calls first."""
    settled: bool
    """Every image is ready or failed."""
    images: tuple[ImageInfo, ...]
    skipped: tuple[Item, ...] = ()
    """Tasks that `--skip-refused` left out, and why."""


class DryRunLine(Model):
    what: str
    state: Literal["ok", "warning", "failed", "unknown"]
    detail: str


class DryRunDocument(Model):
    """`runs submit --dry-run`."""

    ok: bool
    """Whether nothing was found that a submit would fail on."""
    plan_digest: str
    lines: tuple[DryRunLine, ...]
    untested: tuple[str, ...]
    """What only a canary can show."""
    warnings: tuple[Item, ...] = ()


class VerifyDocument(Model):
    """`runs verify`."""

    ok: bool
    """Every file is there and is what it was, and planned = scored + failed + missing."""
    reportable: bool
    """Whether the scores may be reported: `ok`, at least one score, and all of one reward key."""
    problems: tuple[Problem, ...]
    """What is wrong, and what a reader must be told (`attempts_missing`, `infrastructure_share`,
    `network_unfenced`, `rewards_all_equal`)."""


class ProfileLine(Model):
    name: str
    default: bool
    source: str
    """`shipped`, or the file or ConfigMap that it came from."""


class ProfilesDocument(Model):
    """`profiles list`."""

    profiles: tuple[ProfileLine, ...]


class ProfileDocument(Model):
    """`profiles show`."""

    name: str
    default: bool
    source: str
    profile: Profile


class CheckDocument(Model):
    """`profiles check`, `spec check`: whether a file is valid, and every finding."""

    ok: bool
    items: tuple[Item, ...]


class SettingLine(Model):
    key: str
    """Dotted."""
    value: str | int | float | bool | tuple[str, ...] | None
    source: str
    """`built-in`, the file, the variable or the flag that set it."""


class ConfigDocument(Model):
    """`config show`."""

    settings: tuple[SettingLine, ...]


class InstalledObject(Model):
    """One object of an install."""

    kind: str
    name: str
    change: Literal["render", "create", "update", "unchanged", "delete"]
    diff: str = ""
    """With `--diff`: what changes, as a unified diff of YAML. Values of Secrets are not in it."""


class InstallDocument(Model):
    """`install`."""

    action: Literal["render", "dry-run", "diff", "apply", "uninstall", "discover"]
    context: str = ""
    """Empty where no cluster was asked."""
    namespace: str
    objects: tuple[InstalledObject, ...] = ()
    text: str = ""
    """The rendered YAML, or the platform file that was discovered."""
    kept_because: str = ""
    """Why removing leaves the namespace; empty where it does not."""
    warnings: tuple[Item, ...] = ()


class DoctorCheck(Model):
    """One thing that `doctor` looked at."""

    name: str
    status: Literal["ok", "warning", "failed", "skipped"]
    message: str
    hint: str = ""
    """The cure, in one line; empty where there is nothing to cure."""
    seconds: float = Field(ge=0)


class DoctorDocument(Model):
    """`doctor`."""

    ok: bool
    """No check failed."""
    context: str
    namespace: str
    checks: tuple[DoctorCheck, ...]


class DownloadDocument(Model):
    """`runs download`."""

    run: str
    path: str
    """Absolute path of the folder that holds what was downloaded."""
    files: int = Field(ge=0)
    bytes: int = Field(ge=0)


class LogText(Model):
    task: str
    attempt: int = Field(ge=0)
    try_: int = Field(ge=0, alias="try")
    file: str
    """Relative to the try's folder."""
    text: str


class LogsDocument(Model):
    """`runs logs`."""

    run: str
    logs: tuple[LogText, ...]


class ErrorBody(Model):
    code: str
    message: str
    hint: str
    items: tuple[Item, ...]


class ErrorDocument(Model):
    """What any command prints instead when it fails."""

    error: ErrorBody

    @classmethod
    def of(cls, error: HarborError) -> Self:
        return cls(
            error=ErrorBody(
                code=error.code,
                message=error.message,
                hint=error.hint,
                items=Item.each(error.items),
            )
        )
