"""The platform: a site's settings (schema `platform-1`), from a file or a ConfigMap."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from argo_harbor.model.base import Model
from argo_harbor.model.build import BuildInputs

DnsLabel = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
ObjectName = Annotated[str, StringConstraints(pattern=r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)?$")]
"""A Kubernetes object's name, or empty."""
Plain = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._/:@-]*$")]
"""Safe in a workflow parameter or patch: Argo evaluates `{{…}}` wherever it stands."""
RegistryHost = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?$")]
GroupName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]*$")]


class StoreSettings(Model):
    """Where tasks, plans and results lie."""

    kind: Literal["s3", "directory"] = "s3"
    endpoint: str = ""
    """`http(s)://host:port` of the S3 server; a folder for `directory`."""
    bucket: Plain = "argo-harbor"
    prefix: Plain = ""
    secret: ObjectName = "argo-harbor-store"
    """Kubernetes Secret with keys `access_key` and `secret_key`."""


class ImageSettings(Model):
    """Images of the project's own containers."""

    runner: Plain = "ghcr.io/argo-harbor/runner:0.1.0"
    execd: Plain = "opensandbox/execd:release-1.1.1"
    egress: Plain = "opensandbox/egress:release-1.1.1"
    buildkit: Plain = "moby/buildkit:v0.24.0"


class NetworkSettings(Model):
    """Addresses of the cluster itself: what infrastructure rules open and sandboxes never reach."""

    pod_cidrs: tuple[str, ...] = ("10.244.0.0/16",)
    service_cidrs: tuple[str, ...] = ("10.96.0.0/12",)
    node_cidrs: tuple[str, ...] = ()
    api_server: tuple[str, ...] = ()
    """`address:port` of the API server's endpoints, as packets have them after translation."""
    resolvers: tuple[str, ...] = ()
    """Addresses of DNS servers outside the cluster's own."""


class ServedModel(Model):
    """A model that agents may call."""

    base_url: str = Field(pattern=r"^https?://[^\s]+$")
    model: str = Field(min_length=1)
    provider: str = "openai"
    secret: str = Field(default="", pattern=r"^([a-z0-9][a-z0-9.-]*/[A-Za-z0-9._-]+)?$")
    """`NAME/KEY` of the Kubernetes Secret that holds the key."""
    hosts: tuple[str, ...] = ()
    """Hosts to open in the agent phase; default: the host of `base_url`."""
    closed_book: bool = False
    """True when the endpoint strips the provider's own tools, such as web search."""
    auth: Literal["required", "none"] = "required"


class SecretNames(Model):
    """Kubernetes Secrets by name: their values are never read by planning or compiling."""

    image_pull: tuple[ObjectName, ...] = ()
    registry: ObjectName = ""


class WorkflowSettings(Model):
    ttl_seconds: int = Field(default=7 * 24 * 3600, ge=60)
    """How long a finished Workflow is kept."""
    pod_gc_delay_seconds: int = Field(default=60, ge=0)
    infra_retries: int = Field(default=1, ge=0, le=10)
    """Tries of a trial lost to infrastructure faults, besides `max_retries`."""


class Platform(Model):
    """All settings of a site. The defaults are the built-in platform that is used when none is configured."""

    schema_version: Literal["platform-1"] = Field(default="platform-1", alias="schema")
    namespace: DnsLabel = "argo-harbor"
    registry: Plain = "registry.invalid/argo-harbor"
    base_image_mirror: Plain = ""
    """Registry prefix that stands in for Docker Hub, for what is built on and for what is used as it is."""
    insecure_registries: tuple[RegistryHost, ...] = ()
    """Registries that speak plain HTTP, as `host:port`; nodes pull from them by settings of their own."""
    default_sandbox_profile: str = ""
    undeny: tuple[str, ...] = ()
    """Denied ranges that are opened all the same, each written exactly as in the denied list."""
    store: StoreSettings = StoreSettings()
    images: ImageSettings = ImageSettings()
    network: NetworkSettings = NetworkSettings()
    groups: dict[GroupName, tuple[str, ...]] = Field(default_factory=dict)
    """Named lists of hosts, used in profiles as `@name`; package sources differ per site."""
    models: dict[str, ServedModel] = Field(default_factory=dict)
    secrets: SecretNames = SecretNames()
    build: BuildInputs = BuildInputs()
    """What every build of the site is given, such as the address of a package mirror; a request's own values
    come after these."""
    workflow: WorkflowSettings = WorkflowSettings()
    built_in: bool = Field(default=False, exclude=True)
    """True only for the platform that is used when none is configured."""


BUILT_IN = Platform(built_in=True)
