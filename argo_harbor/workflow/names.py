"""Names that a compiled workflow shares with what surrounds it: the installed accounts and Secrets, the
runner in the pods, the programs that later look the pods up. The only place in `workflow` that spells them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argo_harbor.model.build_plan import BuildPlan
    from argo_harbor.model.plan import RunPlan

API_VERSION = "argoproj.io/v1alpha1"

TRIAL_ACCOUNT = "argo-harbor-trial"
"""Of every pod without a need of its own: no rights at all."""
EXECUTOR_ACCOUNT = "argo-harbor-executor"
"""Of Argo's own containers: workflowtaskresults create, patch."""
NETWORK_ACCOUNT = "argo-harbor-network"
BUILD_ACCOUNT = "argo-harbor-build"
"""Of build pods: no rights either, but a name by which a site can let only them be privileged."""
MERGE_ACCOUNT = "argo-harbor-merge"
SHARD_ACCOUNT = "argo-harbor-shard"
WATCH_ACCOUNT = "argo-harbor-watch"
"""Of the pod that ends pods which will never start."""

USER_ROLE = "argo-harbor-user"
"""What a person needs to submit and follow runs; who gets it is the site's to say."""

PLATFORM_CONFIGMAP = "argo-harbor-platform"
PLATFORM_KEY = "platform.toml"
PROFILES_CONFIGMAP = "argo-harbor-profiles"
"""Holds one `<profile>.toml` for each profile."""
ARTIFACT_CONFIGMAP = "argo-harbor-artifacts"
ARTIFACT_KEY = "store"
"""Where Argo's executor puts the small artifacts that its UI shows; its `keyFormat` starts with `argo/`."""

PLAN_LABEL = "argo-harbor/plan"
"""First 16 hex of the plan's digest; the whole one is an annotation of the same name."""
BUILDS_LABEL = "argo-harbor/builds"
"""The same of a workflow that only builds images; it has no plan of a run, and so is none."""
USER_LABEL = "argo-harbor/user"
"""Hash of the name of who submitted the run; the name itself is an annotation of the same name."""
TASKSET_ANNOTATION = "argo-harbor/taskset"
PROFILE_ANNOTATION = "argo-harbor/profile"
RUN_LABEL = "argo-harbor/run"
TASK_LABEL = "argo-harbor/task-index"
ATTEMPT_LABEL = "argo-harbor/attempt"
NET_LABEL = "argo-harbor/net"
WORKFLOW_LABEL = "workflows.argoproj.io/workflow"
"""Argo's own, on every pod of a workflow."""
COMPLETED_LABEL = "workflows.argoproj.io/completed"
"""Argo's own: `true` on a workflow that is over."""

NET_NONE = "none"
NET_INTERNET = "internet"
NET_BUILD = "build"
BUILD_WITH_PREFIX = "build-with-secrets-"
"""Before the number of a template of builds that mount secrets: one for each set of them."""
NET_SYSTEM = "system"
"""Values of `NET_LABEL`: what the outer fence lets a pod reach besides DNS, API server and store."""

PLATFORM_PATH = "/etc/argo-harbor/platform"
STORE_PATH = "/etc/argo-harbor/store"
"""Files `access_key` and `secret_key`."""
MODEL_PATH = "/etc/argo-harbor/model"
"""File `api_key` of the model that the agent calls."""
REGISTRY_PATH = "/etc/argo-harbor/registry"
"""Files `<Secret>/config.json`, as container tools read them; in build pods only."""
EGRESS_TOKEN_PATH = "/run/argo-harbor/egress"
"""File `token`, made anew in each pod; mounted by the runner and the egress container, never by the
sandbox."""
BUILD_SECRETS_PATH = "/etc/argo-harbor/build-secrets"
BUILD_SECRET_FILE = "value"
"""Files `<id>/value` of the secrets that a Dockerfile mounts; in the pods of such builds only."""
WORK_PATH = "/trial"
"""The runner's own scratch space, its home and its working directory."""
ARTIFACT_PATH = f"{WORK_PATH}/artifact"
"""What Argo's UI gets to see: the record and the ends of the logs; at most 1 MiB, absent when there is
nothing."""

POD_UID_ENV = "ARGO_HARBOR_POD_UID"
NODE_ENV = "ARGO_HARBOR_NODE"
NAMESPACE_ENV = "ARGO_HARBOR_NAMESPACE"
WORKFLOW_UID_ENV = "ARGO_HARBOR_WORKFLOW_UID"
"""Of the workflow that the run is: in a part, of the parent."""
EXECD_TOKEN_ENV = "ARGO_HARBOR_EXECD_TOKEN"
GRANT_ENV_PREFIX = "ARGO_HARBOR_GRANT_"
"""Before the name of a granted variable, so that no grant changes how the runner itself starts."""

SERVICE_PREFIX = "service-"
"""Before the name of a service: its container in the pod, and the side of its image."""

MAIN = "main"
MERGE = "merge"
GATE = "gate"
BUILD = "build"
BUILD_WITH_PREFIX = "build-with-secrets-"
"""Before the number of a template of builds that mount secrets: one for each set of them."""
SHARD = "shard"
WATCH = "watch"
NETWORK_BASE = "network-base"
NETWORK_INTERNET = "network-internet"
NETWORK_BUILD = "network-build"
TRIAL_VERIFIED = "trial-verified"
"""Names of templates; `MERGE`, `GATE` and the network's are names of DAG entries too."""

RUN_PARAMETER = "run"
WORKFLOW_PARAMETER = "workflow"
"""Parameters of a part: the run's id and the UID of the parent workflow."""


CHUNK_PREFIX = "chunk-"


def host_secret(run: str) -> str:
    """Name of the Secret with the variables that a run took from its submitter's shell."""
    return f"{run}-host"


def chunk_name(number: int) -> str:
    return f"{CHUNK_PREFIX}{number:03}"


def shard_name(number: int) -> str:
    return f"shard-{number:03}"


def token_secret(account: str) -> str:
    """The Secret in which Argo looks for the token of an executor's account."""
    return f"{account}.service-account-token"


def plan_label(plan: RunPlan) -> str:
    return plan.digest[:16]


def builds_label(plan: BuildPlan) -> str:
    return plan.content_digest()[:16]


def is_build(template: str) -> bool:
    """Whether a template, by its name, builds an image."""
    return template == BUILD or template.startswith(BUILD_WITH_PREFIX)
