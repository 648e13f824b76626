"""The request file: which agent, how often, in what sandbox, with which variables (`--spec-file`).

Values of environment maps carry a prefix that says where they come from; see `EnvValue`.
"""

from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, StringConstraints

from argo_harbor.model.base import Model
from argo_harbor.model.build import BuildInputs

EnvName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
EnvText = Annotated[str, StringConstraints(pattern=r"^(host|lit|runtime|secret):")]
"""A prefixed value as written in the file. The reader reports a bare value with its fix."""

DEFAULT_CANARY = 10


class EnvValue(NamedTuple):
    """A prefixed value taken apart.

    `host`: a variable of the submitting shell, read at submit. `lit`: the text itself. `runtime`: a variable
    that the platform sets on the runner. `secret`: `NAME/KEY` of a Kubernetes Secret.
    """

    kind: Literal["host", "lit", "runtime", "secret"]
    value: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError for a bare value or an unknown prefix."""
        kind, colon, value = text.partition(":")
        if not colon or kind not in ("host", "lit", "runtime", "secret"):
            raise ValueError(f"{text!r} has none of the prefixes host:, lit:, runtime:, secret:")
        return cls(kind, value)  # type: ignore[arg-type]  # narrowed by the check above


EnvMap = dict[EnvName, EnvText]


class ModelRef(Model):
    ref: str = Field(min_length=1)
    """A name from the platform's `[models]`."""


class AgentSource(Model):
    """The agent: a built-in name of Harbor, or `import_path` (`module:Class`) of one in the runner image."""

    name: str = Field(min_length=1, max_length=200)
    import_path: str = Field(default="", pattern=r"^([A-Za-z_][\w.]*:[A-Za-z_]\w*)?$")
    model: ModelRef | None = None


class Target(Model):
    kind: Literal["harbor"] = "harbor"
    source: AgentSource
    agent_kwargs: dict[str, Any] = Field(default_factory=dict)
    env_secrets: dict[EnvName, str] = Field(default_factory=dict)
    """Variable to `NAME/KEY` (or `NAME`, the key then is the variable) of a Secret: short for `secret:`."""
    env: EnvMap = Field(default_factory=dict)
    """Variables of the agent phase; they also answer `${NAME}` in [environment], [solution], MCP headers."""
    n_attempts: int = Field(default=1, ge=1, le=1000)
    max_retries: int = Field(default=0, ge=0, le=10)
    setup_timeout_seconds: int | None = Field(default=None, ge=1, le=24 * 3600)


class VerifierRequest(Model):
    env: EnvMap = Field(default_factory=dict)
    env_secrets: dict[EnvName, str] = Field(default_factory=dict)


class Deployment(Model):
    """A model served for the time of the run."""

    image: str = Field(min_length=1)
    command: tuple[str, ...] = ()
    port: int = Field(default=8000, ge=1, le=65535)
    env: EnvMap = Field(default_factory=dict)
    env_secrets: dict[EnvName, str] = Field(default_factory=dict)
    cpus: float = Field(default=1, gt=0)
    memory_mb: int = Field(default=4096, ge=1)
    gpus: int = Field(default=0, ge=0)


class RequestSpec(Model):
    target: Target
    verifier: VerifierRequest = VerifierRequest()
    reward_key: str = Field(default="reward", min_length=1, max_length=255)


class SandboxRequest(Model):
    """Replaces task.toml's values for the agent's sandbox only. How much is too much, the profile says."""

    profile: str = ""
    cpus: float | None = Field(default=None, gt=0)
    memory_mb: int | None = Field(default=None, ge=1)
    storage_mb: int | None = Field(default=None, ge=1)


class Execution(Model):
    sandbox: SandboxRequest = SandboxRequest()
    max_concurrent_task_jobs: int | None = Field(default=None, ge=1)
    build: BuildInputs = BuildInputs()
    """What image builds are given."""


class Publication(Model):
    experiment: str = ""
    intake_dataset: str = ""


class RunSpec(Model):
    """One request. `execution` is obligatory in a file; `{}` takes the defaults."""

    spec: RequestSpec
    execution: Execution
    timeout_seconds: int | None = Field(default=None, ge=1)
    """Time budget from the first trial's start, seconds; default and ceiling are the profile's."""
    publication: Publication = Publication()
    deployment: Deployment | None = None
    canary: int | bool = Field(default=False, ge=0)
    """Tasks to run before the rest; true is `DEFAULT_CANARY`, false or 0 is none."""

    @classmethod
    def for_agent(
        cls,
        name: str,
        *,
        attempts: int = 1,
        max_retries: int = 0,
        sandbox: SandboxRequest | None = None,
        max_concurrent: int | None = None,
        canary: int = 0,
    ) -> Self:
        """The spec that `--agent NAME` and the sandbox flags stand for."""
        target = Target(source=AgentSource(name=name), n_attempts=attempts, max_retries=max_retries)
        return cls(
            spec=RequestSpec(target=target),
            execution=Execution(sandbox=sandbox or SandboxRequest(), max_concurrent_task_jobs=max_concurrent),
            canary=canary,
        )

    @property
    def canary_size(self) -> int:
        return DEFAULT_CANARY if self.canary is True else int(self.canary)
