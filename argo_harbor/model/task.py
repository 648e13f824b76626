"""task.toml as data: every field of Harbor 0.25, its names and defaults, with stricter values.

`sources` reads files into these models and `planning` reads them; Harbor itself is not needed for either. The
models differ from Harbor's in what they refuse: types are not converted, booleans are no numbers, and numbers
have bounds. Unknown keys are ignored here, because the reader turns them into warnings.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from argo_harbor.model.base import Model
from argo_harbor.model.task_env import check_headers, check_names
from argo_harbor.model.task_names import (
    check_artifact_destination,
    check_artifact_source,
    check_distinct,
    check_service,
    check_step_name,
    is_absolute_in_container,
)
from argo_harbor.model.task_network import check_policy, normalize_hosts

MAX_SECONDS = 604_800.0
"""Seven days: the longest timeout that a task may name, in seconds."""
MAX_MEGABYTES = 2**24
MAX_CPUS = 1024
MAX_GPUS = 64
MAX_HEALTHCHECK_RETRIES = 1_000_000
MAIN_SERVICE = "main"
"""The container in which the agent works, as compose files and artifacts name it."""

NetworkMode = Literal["no-network", "public", "allowlist"]
VerifierMode = Literal["shared", "separate"]
Seconds = Annotated[float, Field(gt=0, le=MAX_SECONDS)]
"""A timeout."""
Megabytes = Annotated[int, Field(ge=1, le=MAX_MEGABYTES)]


class TaskModel(Model):
    """Base of the models of task.toml. Unknown keys are the reader's business."""

    # Attribute docstrings make pydantic read the source of each class, which is most of the import time.
    model_config = ConfigDict(extra="ignore", use_attribute_docstrings=False)


class Author(TaskModel):
    name: str
    email: str | None = None


class PackageInfo(TaskModel):
    """[task]: what the task is called in a registry."""

    name: str = Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._-]*/[a-zA-Z0-9][a-zA-Z0-9._-]*\z")
    """`org/name`."""
    version: str | None = Field(default=None, min_length=1)
    description: str = ""
    authors: list[Author] = Field(default_factory=list)
    keywords: list[str] = Field(default_factory=list)

    @field_validator("name")
    @classmethod
    def _no_climbing(cls, name: str) -> str:
        if ".." in name:
            raise ValueError("must not contain '..'")
        return name


class SolutionConfig(TaskModel):
    """[solution]: only the oracle reads it."""

    env: dict[str, str] = Field(default_factory=dict)

    @field_validator("env")
    @classmethod
    def _names(cls, env: dict[str, str]) -> dict[str, str]:
        check_names(env)
        return env


class PhaseNetwork(TaskModel):
    """Network of one phase; without a mode the phase has the network of its environment."""

    network_mode: NetworkMode | None = None
    allowed_hosts: list[str] | None = None

    @model_validator(mode="after")
    def _hosts_belong_to_an_allowlist(self) -> Self:
        check_policy(self.network_mode, self.allowed_hosts)
        return self

    @field_validator("allowed_hosts")
    @classmethod
    def _hosts(cls, hosts: list[str] | None) -> list[str] | None:
        return normalize_hosts(hosts) if hosts else hosts


class AgentConfig(PhaseNetwork):
    """[agent]."""

    timeout_sec: Seconds | None = None
    """None leaves it to the profile."""
    user: str | int | None = None


class HealthcheckConfig(TaskModel):
    """A command that must succeed before the agent is set up."""

    command: str
    interval_sec: Seconds = 5.0
    timeout_sec: Seconds = 30.0
    start_period_sec: float = Field(default=0.0, ge=0, le=MAX_SECONDS)
    """Seconds in which a failure does not count."""
    start_interval_sec: Seconds = 5.0
    retries: int = Field(default=3, ge=0, le=MAX_HEALTHCHECK_RETRIES)


class TpuSpec(TaskModel):
    """Read to be refused with a reason: nothing here runs on TPUs."""

    type: str = Field(min_length=1)
    topology: str

    @field_validator("topology")
    @classmethod
    def _dimensions(cls, topology: str) -> str:
        sides = topology.strip().split("x")
        if len(sides) < 2 or not all(side.isdecimal() and side[0] != "0" for side in sides):
            raise ValueError(f"{topology!r} is no topology such as '2x4' or '2x2x1'")
        return topology.strip()


class MCPServerConfig(TaskModel):
    """[[environment.mcp_servers]]."""

    name: str
    transport: Literal["stdio", "sse", "streamable-http"] = "sse"
    url: str | None = None
    command: str | None = None
    args: list[str] = Field(default_factory=list)
    headers: dict[str, str] = Field(default_factory=dict)

    @field_validator("transport", mode="before")
    @classmethod
    def _short_form(cls, transport: object) -> object:
        return "streamable-http" if transport == "http" else transport

    @field_validator("headers")
    @classmethod
    def _headers(cls, headers: dict[str, str]) -> dict[str, str]:
        check_headers(headers)
        return headers

    @model_validator(mode="after")
    def _fields_of_the_transport(self) -> Self:
        if self.transport != "stdio" and not self.url:
            raise ValueError(f"transport {self.transport!r} needs a url")
        if self.transport == "stdio" and not self.command:
            raise ValueError("transport 'stdio' needs a command")
        if self.transport == "stdio" and self.headers:
            raise ValueError("transport 'stdio' takes no headers")
        return self


class EnvironmentConfig(TaskModel):
    """[environment] and [verifier.environment]."""

    network_mode: NetworkMode = "public"
    allowed_hosts: list[str] | None = None
    build_timeout_sec: Seconds = 600.0
    docker_image: str | None = Field(default=None, pattern=r"^[A-Za-z0-9._/:@-]*\z")
    """A prebuilt image. The characters are those of image references, and safe in a workflow."""
    os: Literal["linux", "windows"] = "linux"
    cpus: int | float | None = Field(default=None, gt=0, le=MAX_CPUS)
    memory_mb: Megabytes | None = None
    storage_mb: Megabytes | None = None
    gpus: int | None = Field(default=None, ge=0, le=MAX_GPUS)
    gpu_types: list[str] | None = None
    tpu: TpuSpec | None = None
    mcp_servers: list[MCPServerConfig] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    skills_dir: str | None = None
    healthcheck: HealthcheckConfig | None = None
    workdir: str | None = None
    allow_internet: bool | None = Field(default=None, exclude=True)
    """Deprecated and always None after reading: it became `network_mode`."""

    @model_validator(mode="before")
    @classmethod
    def _deprecated_keys(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not (
            "memory" in data or "storage" in data or "allow_internet" in data
        ):
            return data
        data = dict(data)
        for old in ("memory", "storage"):
            if old in data:
                _replace_size(data, old)
        # Anything but a boolean stays for the field to refuse.
        if isinstance(allowed := data.get("allow_internet"), bool):
            del data["allow_internet"]
            if "network_mode" not in data and data.get("allowed_hosts") is None:
                data["network_mode"] = "public" if allowed else "no-network"
        return data

    @field_validator("os", mode="before")
    @classmethod
    def _any_case(cls, name: object) -> object:
        return name.lower() if isinstance(name, str) else name

    @field_validator("cpus")
    @classmethod
    def _whole_cpus(cls, cpus: int | float | None) -> int | float | None:
        return int(cpus) if isinstance(cpus, float) and cpus.is_integer() else cpus

    @field_validator("env")
    @classmethod
    def _names(cls, env: dict[str, str]) -> dict[str, str]:
        check_names(env)
        return env

    @field_validator("allowed_hosts")
    @classmethod
    def _hosts(cls, hosts: list[str] | None) -> list[str] | None:
        return normalize_hosts(hosts) if hosts else hosts

    @model_validator(mode="after")
    def _hosts_belong_to_an_allowlist(self) -> Self:
        check_policy(self.network_mode, self.allowed_hosts)
        return self


class VerifierCollectConfig(TaskModel):
    """[[verifier.collect]]: a command after the agent and before artifacts are collected."""

    command: str
    service: str = MAIN_SERVICE
    timeout_sec: Seconds = 60.0
    user: str | int | None = None

    @field_validator("service")
    @classmethod
    def _service(cls, service: str) -> str:
        return check_service(service)


class VerifierConfig(PhaseNetwork):
    """[verifier]."""

    timeout_sec: Seconds = 600.0
    env: dict[str, str] = Field(default_factory=dict)
    user: str | int | None = None
    environment_mode: VerifierMode | None = None
    """None means separate when there is an `environment`, else what the level above says."""
    environment: EnvironmentConfig | None = None
    collect: list[VerifierCollectConfig] = Field(default_factory=list)

    @field_validator("env")
    @classmethod
    def _names(cls, env: dict[str, str]) -> dict[str, str]:
        check_names(env)
        return env

    @model_validator(mode="after")
    def _shared_has_no_environment(self) -> Self:
        if self.environment_mode == "shared" and self.environment is not None:
            raise ValueError('environment_mode = "shared" contradicts [verifier.environment]')
        return self

    @property
    def own_mode(self) -> VerifierMode | None:
        """The mode that this table decides, None when it says nothing."""
        return self.environment_mode or ("separate" if self.environment is not None else None)


class ArtifactConfig(TaskModel):
    """What is kept of the sandbox after a trial."""

    source: str
    """Path in the container."""
    destination: str | None = None
    """Relative to the trial's artifacts folder; None mirrors the source."""
    exclude: list[str] = Field(default_factory=list)
    service: str | None = None

    @field_validator("source")
    @classmethod
    def _source(cls, source: str) -> str:
        return check_artifact_source(source)

    @field_validator("destination")
    @classmethod
    def _destination(cls, destination: str | None) -> str | None:
        return check_artifact_destination(destination) if destination else None

    @field_validator("service")
    @classmethod
    def _service(cls, service: str | None) -> str | None:
        return None if service is None else check_service(service)

    @model_validator(mode="after")
    def _absolute_in_other_services(self) -> Self:
        if self.service not in {None, MAIN_SERVICE} and not is_absolute_in_container(self.source):
            raise ValueError(f"source {self.source!r} of service {self.service!r} must be absolute")
        return self


def _check_entries(entries: list[str | ArtifactConfig]) -> list[str | ArtifactConfig]:
    for entry in entries:
        if isinstance(entry, str):
            check_artifact_source(entry)
    return entries


class StepConfig(TaskModel):
    """[[steps]]: one step of a multi-step task."""

    name: str
    agent: AgentConfig = Field(default_factory=AgentConfig)
    verifier: VerifierConfig = Field(default_factory=VerifierConfig)
    min_reward: float | dict[str, float] | None = None
    """Below it the remaining steps are left out; a number means the key `reward`."""
    healthcheck: HealthcheckConfig | None = None
    artifacts: list[str | ArtifactConfig] = Field(default_factory=list)

    @field_validator("name")
    @classmethod
    def _name(cls, name: str) -> str:
        return check_step_name(name)

    @field_validator("artifacts")
    @classmethod
    def _artifacts(cls, entries: list[str | ArtifactConfig]) -> list[str | ArtifactConfig]:
        return _check_entries(entries)


class TaskConfig(TaskModel):
    """A whole task.toml."""

    schema_version: str = "1.4"
    task: PackageInfo | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    verifier: VerifierConfig = Field(default_factory=VerifierConfig)
    agent: AgentConfig = Field(default_factory=AgentConfig)
    environment: EnvironmentConfig = Field(default_factory=EnvironmentConfig)
    solution: SolutionConfig = Field(default_factory=SolutionConfig)
    source: str | None = None
    multi_step_reward_strategy: Literal["mean", "final"] | None = None
    """None means the mean."""
    steps: list[StepConfig] | None = None
    artifacts: list[str | ArtifactConfig] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _old_version_key(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "version" not in data:
            return data
        renamed = {key: value for key, value in data.items() if key != "version"}
        renamed.setdefault("schema_version", data["version"])
        return renamed

    @field_validator("steps")
    @classmethod
    def _distinct_steps(cls, steps: list[StepConfig] | None) -> list[StepConfig] | None:
        check_distinct([step.name for step in steps or ()])
        return steps

    @field_validator("artifacts")
    @classmethod
    def _artifacts(cls, entries: list[str | ArtifactConfig]) -> list[str | ArtifactConfig]:
        return _check_entries(entries)

    def verifier_mode(self, step: StepConfig | None = None) -> VerifierMode:
        """Where the task, or one of its steps, is graded."""
        own = step.verifier.own_mode if step is not None else None
        return own or self.verifier.own_mode or "shared"

    def verifier_environment(self, step: StepConfig | None = None) -> EnvironmentConfig | None:
        """Resources and network of a separate verifier, None when it grades in the agent's sandbox."""
        if self.verifier_mode(step) == "shared":
            return None
        own = step.verifier.environment if step is not None else None
        return own or self.verifier.environment or self.environment


_UNITS = {"G": 1024.0, "M": 1.0, "K": 1 / 1024}


def _replace_size(data: dict[str, Any], old: str) -> None:
    """Turn `memory = "2G"` into `memory_mb`. Raises a pydantic error, also when both differ."""
    text = data.pop(old)
    new = f"{old}_mb"
    megabytes = _size_to_mb(text)
    if megabytes is None:
        raise _broken_size(old, f'{text!r} is no size such as "2G" or "512M"; better set {new}')
    if data.setdefault(new, megabytes) != megabytes:
        raise _broken_size(old, f"{text!r} is {megabytes} MB, but {new} is {data[new]!r}")


def _size_to_mb(text: object) -> int | None:
    if not isinstance(text, str):
        return None
    stripped = text.strip().upper()
    factor = _UNITS.get(stripped[-1:])
    if factor is None:
        return None
    try:
        return int(float(stripped[:-1]) * factor)
    except (ValueError, OverflowError):
        return None


def _broken_size(key: str, problem: str) -> PydanticCustomError:
    # The validator sees the whole table; the context tells the reader which key of it is meant.
    return PydanticCustomError("deprecated_size", "{problem}", {"problem": problem, "key": key})
