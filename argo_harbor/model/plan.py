"""The plan: everything decided before anything runs.

The head (`plan.json`, `PlanHead`) names every task with the digest of its part; a part
(`tasks/<index>.json`, `TaskPlan`) holds one task. A pod reads those two small files. Both are canonical JSON
and content-addressed: the plan's digest is the SHA-256 of the head.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from argo_harbor.model.base import Model
from argo_harbor.model.platform import Platform
from argo_harbor.model.profile import Profile
from argo_harbor.model.services import HealthProbe, ServiceMount
from argo_harbor.model.spec import Publication
from argo_harbor.model.states import VerifierMode
from argo_harbor.model.taskset import Taskset

Hex64 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
PlainText = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._/:@-]*$")]
"""What may reach a workflow parameter or a pod patch."""
DagName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9][-a-zA-Z0-9]{0,127}$")]
Seconds = Annotated[float, Field(ge=0)]

PLAN_SCHEMA: Final = "plan-1"
TASK_SCHEMA: Final = "task-1"


class ImagePlan(Model):
    """The image of one sandbox."""

    kind: Literal["prebuilt", "build"]
    reference: PlainText
    """What the sandbox container names: the task's own image, or `<registry>/env:<first 32 of key>`."""
    key: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """Image key of a build, 64 hex; tasks with one key share one build. Empty for a prebuilt image."""
    context: str = ""
    """Build context relative to the task folder."""
    dockerfile: str = "Dockerfile"
    """Relative to the context."""
    target: str = ""
    """Build stage to stop at; empty for the last."""
    arguments: tuple[tuple[str, str], ...] = ()
    """Values for the ARGs that the Dockerfile declares, sorted; part of the key."""
    secrets: tuple[tuple[str, str], ...] = ()
    """Build secrets that the Dockerfile mounts: id and `NAME/KEY` of a Kubernetes Secret, sorted. No part of
    the key: a new password makes no new image."""
    environment_digest: str = ""
    bases: tuple[str, ...] = ()
    """Images named by FROM, as written."""
    bundles_tests: bool = False
    """True when the image itself brings `/tests` and none are uploaded."""
    workdir: str = ""
    """Where commands start by default: `[environment].workdir`, else the Dockerfile's WORKDIR."""


class Images(Model):
    agent: ImagePlan
    verifier: ImagePlan | None = None
    """None when grading happens in the agent's sandbox."""


class Amounts(Model):
    cpus: float = Field(gt=0)
    memory_mb: int = Field(ge=1)
    storage_mb: int = Field(ge=1)
    gpus: int = Field(default=0, ge=0)


class Resources(Model):
    """What a sandbox gets: `request` is guaranteed, `limit` is where it is stopped."""

    request: Amounts
    limit: Amounts


class SandboxResources(Model):
    agent: Resources
    verifier: Resources | None = None


class ServiceVariable(Model):
    """One variable of a container, from the task's compose file."""

    name: str
    text: str = ""
    granted: str = ""
    """Name of the granted variable that it is given the value of, instead of a text."""


class ServicePlan(Model):
    """One container beside the sandbox, from the task's compose file."""

    name: str = Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$")
    """The name by which every container of the pod reaches it."""
    image: ImagePlan
    entrypoint: tuple[str, ...] | None = None
    """Instead of the image's own; null keeps that."""
    command: tuple[str, ...] | None = None
    environment: tuple[ServiceVariable, ...] = ()
    working_dir: str = ""
    user: int | None = Field(default=None, ge=0)
    group: int | None = Field(default=None, ge=0)
    probe: HealthProbe | None = None
    once: bool = False
    """True for one that runs to its end before the next container starts."""
    resources: Resources
    mounts: tuple[ServiceMount, ...] = ()


class PhaseRules(Model):
    """What a sandbox may reach in one phase, by name; infrastructure is added in the pod."""

    mode: Literal["none", "hosts", "public"]
    """`none`: nothing. `hosts`: the listed. `public`: any address outside the denied ranges."""
    hosts: tuple[str, ...] = ()
    """Names, `*.` wildcards, addresses and CIDRs; sorted, unique; only with `hosts`."""


class NetworkRules(Model):
    setup: PhaseRules
    agent: PhaseRules
    verifier: PhaseRules
    asked: Literal["no-network", "allowlist", "public"]
    """The task's own widest wish, before the profile narrowed it."""
    narrowed: bool
    """True where the profile left less than the task asked for."""
    opened_for_grading: tuple[str, ...] = ()
    """Hosts that the verifier phase has and the agent phase had not, in one container."""
    digest: Hex64
    """SHA-256 of the canonical JSON of the three phases and the denied ranges."""

    @property
    def network_class(self) -> Literal["none", "internet"]:
        """Label of the pod: whether the outer fence lets public addresses through at all."""
        phases = (self.setup, self.agent, self.verifier)
        return "none" if all(phase.mode == "none" for phase in phases) else "internet"


class PhaseTimeouts(Model):
    """Seconds. Every phase has a limit; the runner keeps them, `outer` is the pod's guard."""

    start: Seconds
    """Sandbox ready; the profile's `start_timeout_seconds`."""
    healthcheck: Seconds
    """Upper bound of the environment's healthcheck loop; 0 without one."""
    setup: Seconds
    """Agent installation."""
    agent: Seconds
    verifier: Seconds
    collect: Seconds
    """Sum of the `[[verifier.collect]]` hooks."""
    transfer: Seconds
    """Uploads and downloads, all together."""


class StepPlan(Model):
    """One step of a multi-step task."""

    name: str
    verifier_mode: VerifierMode
    timeouts: PhaseTimeouts
    """What the step adds to the trial; the first one includes start and setup."""
    rules: NetworkRules
    """`setup` is only the first step's: setup hosts never return."""
    verifier_image: ImagePlan | None = None
    """Of a separate verifier of this step."""


class EnvNeeds(Model):
    """Names of variables that the task reads as `${NAME}`, per destination; values are never here."""

    environment: tuple[str, ...] = ()
    """[environment].env, [verifier.environment].env and MCP headers: granted by `target`."""
    solution: tuple[str, ...] = ()
    verifier: tuple[str, ...] = ()


class ArtifactPlan(Model):
    source: str
    destination: str = ""
    exclude: tuple[str, ...] = ()
    service: str = ""


class TaskPlan(Model):
    """One task of a run: `tasks/<index>.json`."""

    schema_version: Literal["task-1"] = TASK_SCHEMA
    index: int = Field(ge=0)
    name: str
    folder: str
    digest: Hex64
    """Content digest; names the archive in the store."""
    images: Images
    resources: SandboxResources
    rules: NetworkRules
    timeouts: PhaseTimeouts
    """Of the whole trial: for a multi-step task the sums over its steps."""
    outer_seconds: int = Field(ge=1)
    """Deadline of a trial pod: the sum of `timeouts`, rounded up."""
    verifier_outer_seconds: int = Field(default=0, ge=0)
    """Deadline of a separate verifier's pod; 0 when there is none."""
    verifier_mode: VerifierMode
    kill_before_grading: bool = False
    """True when the profile's `shared_verifier = "kill"` applies to this task."""
    steps: tuple[StepPlan, ...] = ()
    artifacts: tuple[ArtifactPlan, ...] = ()
    env: EnvNeeds = EnvNeeds()
    agent_user: str = ""
    """User of the agent, numeric or by name; empty: the image's own."""
    verifier_user: str = ""
    users: tuple[str, ...] = ()
    """Every user that the task, a step or a hook names; sorted."""
    services: tuple[ServicePlan, ...] = ()
    """Containers beside the agent's sandbox, in the order in which they start."""
    main_environment: tuple[ServiceVariable, ...] = ()
    """What the compose file adds to the environment of every command in the agent's sandbox."""
    main_mounts: tuple[ServiceMount, ...] = ()
    """Folders of the agent's sandbox that it shares with services."""

    @property
    def sides(self) -> dict[str, ImagePlan]:
        """The images of all containers of the task by the side that uses them: `agent`, `verifier`,
        `step-<number>` of a step's own verifier, `service-<name>`. An image may stand under several."""
        found = {"agent": self.images.agent}
        found |= {f"service-{service.name}": service.image for service in self.services}
        if self.images.verifier is not None:
            found["verifier"] = self.images.verifier
        for number, step in enumerate(self.steps):
            if step.verifier_image is not None:
                found[f"step-{number}"] = step.verifier_image
        return found


class Skipped(Model):
    """Why a task of the selection does not run (`--skip-refused`)."""

    code: str
    message: str


class TaskEntry(Model):
    """One selected task in the head."""

    index: int = Field(ge=0)
    name: str
    dag_name: str = Field(default="", pattern=r"^([a-zA-Z0-9][-a-zA-Z0-9]{0,127})?$")
    """Name of its DAG entry, unique in the run; empty for a skipped task."""
    part: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """SHA-256 of `tasks/<index>.json`; empty for a skipped task."""
    skipped: Skipped | None = None


class TasksetRef(Model):
    name: str
    digest: Hex64
    total: int = Field(ge=1)
    """Tasks of the whole suite, selected or not."""
    source: str = ""
    """Pinned remote source; empty for a folder, whose path is no part of the plan."""

    @property
    def ref(self) -> str:
        return f"{self.name}#{self.digest}"


class ModelPlan(Model):
    """The model that the agent calls."""

    ref: str
    base_url: str
    model: str
    provider: str
    secret: str = ""
    hosts: tuple[str, ...]
    """Open in the agent phase only."""
    closed_book: bool


class AgentPlan(Model):
    name: str
    import_path: str = ""
    calls_model: bool
    kwargs: dict[str, Any] = Field(default_factory=dict)
    model: ModelPlan | None = None


class Grant(Model):
    """One granted variable. A `lit` value stands in `value`; of the others only where to read it."""

    name: str
    kind: Literal["host", "lit", "runtime", "secret"]
    value: str


class Grants(Model):
    target: tuple[Grant, ...] = ()
    verifier: tuple[Grant, ...] = ()


class Limits(Model):
    """Caps and deadlines of the run."""

    cap: int = Field(ge=1)
    """Trials at once: the smaller of the profile's cap and the spec's wish."""
    timeout_seconds: int = Field(ge=1)
    queue_timeout_seconds: int = Field(ge=1)
    build_seconds: int = Field(ge=0)
    """Upper bound of one image build."""
    merge_seconds: int = Field(ge=1)


class PlanHead(Model):
    """The head of a plan: `plan.json`."""

    schema_version: Literal["plan-1"] = PLAN_SCHEMA
    taskset: TasksetRef
    agent: AgentPlan
    grants: Grants = Grants()
    n_attempts: int = Field(ge=1)
    max_retries: int = Field(ge=0)
    infra_retries: int = Field(ge=0)
    reward_key: str
    limits: Limits
    canary: tuple[int, ...] = ()
    """Indexes of the tasks that run before the gate; empty without a canary."""
    profile: Profile
    platform: Platform
    denied: tuple[str, ...]
    """Ranges denied in every phase: the built-in list and the profile's, less the platform's `undeny`."""
    publication: Publication = Publication()
    parent: str = ""
    """The run that this one completes (`rerun`)."""
    tasks: tuple[TaskEntry, ...]

    @property
    def running(self) -> tuple[TaskEntry, ...]:
        """The tasks that run: all but the skipped."""
        return tuple(entry for entry in self.tasks if entry.skipped is None)


@dataclass(frozen=True)
class RunPlan:
    """A whole plan in memory: what planning returns, what compiling, publishing and engines take."""

    head: PlanHead
    parts: tuple[TaskPlan, ...]
    """In the order of `head.running`."""
    taskset: Taskset | None = field(default=None, compare=False, repr=False)
    """What was planned, to find the tasks' files; no part of the plan, None for one that was read back."""

    @cached_property
    def digest(self) -> str:
        """64 hex: SHA-256 of the canonical head, which holds the digest of every part."""
        return self.head.content_digest()

    def part(self, index: int) -> TaskPlan:
        """The part of the task with that index. Raises KeyError for a skipped or unknown one."""
        return self._by_index[index]

    @cached_property
    def _by_index(self) -> dict[int, TaskPlan]:
        return {part.index: part for part in self.parts}
