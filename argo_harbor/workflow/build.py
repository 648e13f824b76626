"""The build step of one image: the runner asks the registry first, and builds with BuildKit only what is
not there.

Steps of a run find their image by task and side in the run's plan; those of a workflow of builds only by its
place in the build plan. What a Dockerfile mounts as a secret is mounted by the runner of just those builds
that use it, so builds with secrets have a template for each set of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from argo_harbor.errors import Refused
from argo_harbor.model.plan import RunPlan
from argo_harbor.model.platform import Platform
from argo_harbor.workflow import names
from argo_harbor.workflow.buildkit import CLIENT_MOUNTS, VOLUMES, pod_patch
from argo_harbor.workflow.objects import DAGTask, KeyToPath, Parameter, Template, Volume, VolumeMount
from argo_harbor.workflow.pods import RunReference, container, retried
from argo_harbor.workflow.tasks import PlannedTask, Side
from argo_harbor.workflow.text import inputs, parameter

Secrets = tuple[tuple[str, str], ...]
"""Id and `NAME/KEY` of each secret that a build mounts."""
MOST_SETS = 20
"""Templates of builds with secrets in one workflow: Argo takes 200 templates in all."""
# The name of a build's entry stays short enough to be read; the rest is its image key.
_STEM = 48


class Build(NamedTuple):
    """One image to build: where its context lies, and the name of its DAG entry."""

    key: str
    """Image key, 64 hex."""
    task: int
    """Index of the first task that uses the image."""
    side: Side
    name: str
    template: str


def builds(tasks: Sequence[PlannedTask]) -> dict[str, Build]:
    """Every image that the tasks need built, by key, each named after the first task that uses it.

    `status` finds the build entries of a run by these names. Raises as `templates_by_secrets`.
    """
    templates = run_templates(tasks)
    taken: set[str] = set()
    found: dict[str, Build] = {}
    for task in tasks:
        for side, image in task.images:
            if image.kind == "build" and image.key not in found:
                name = entry_name(task.dag_name, side, image.key, taken)
                found[image.key] = Build(image.key, task.index, side, name, templates[image.secrets])
    return found


def run_templates(tasks: Iterable[PlannedTask]) -> dict[Secrets, str]:
    """Names of the build templates of a run, numbered over all its tasks.

    Raises as `templates_by_secrets`.
    """
    return templates_by_secrets(image.secrets for task in tasks for _, image in task.images)


def entry_name(dag_name: str, side: Side, key: str, taken: set[str]) -> str:
    """Name of the entry that builds an image for a task; added to the names that are `taken`."""
    # A service's name may have dots and underscores.
    shown = "".join(char if char.isascii() and char.isalnum() else "-" for char in side)
    name = f"build-{dag_name[:_STEM]}" + ("" if side == "agent" else f"-{shown}")
    if name in taken or len(dag_name) > _STEM:
        name = f"{name}-{key[:8]}"
    taken.add(name)
    return name


def templates_by_secrets(sets: Iterable[Secrets]) -> dict[Secrets, str]:
    """Name of the template for each set of secrets; always one for none.

    Raises: Refused `invalid_spec` for more sets than a workflow holds templates for.
    """
    distinct = dict.fromkeys(each for each in sets if each)
    if len(distinct) > MOST_SETS:
        raise Refused(
            "invalid_spec",
            f"the images mount {len(distinct)} sets of build secrets, and a workflow takes {MOST_SETS}",
            "select fewer tasks with --tasks",
        )
    numbered = {each: f"{names.BUILD_WITH_PREFIX}{number}" for number, each in enumerate(distinct)}
    return {(): names.BUILD, **numbered}


def build_entry(build: Build, depends: str) -> DAGTask:
    entry: DAGTask = {"name": build.name, "template": build.template}
    if depends:
        entry["depends"] = depends
    arguments = [parameter("index", str(build.task))]
    if build.side != "agent":
        arguments.append(parameter("side", build.side))
    entry["arguments"] = {"parameters": arguments}
    return entry


def build_templates(
    plan: RunPlan, reference: RunReference, tasks: Iterable[PlannedTask], named: Mapping[Secrets, str]
) -> list[Template]:
    """The templates that the build entries of these tasks call, if any; `named` are those of the run."""
    used = {image.secrets for task in tasks for _, image in task.images if image.key in task.built}
    return [
        build_template(plan, reference, name=name, secrets=secrets)
        for secrets, name in named.items()
        if secrets in used
    ]


def build_template(
    plan: RunPlan, reference: RunReference, *, name: str = names.BUILD, secrets: Secrets = ()
) -> Template:
    head = plan.head
    return image_template(
        head.platform,
        ["--plan", plan.digest, "--run", reference.run, "--task", inputs("index"), "--side", inputs("side")],
        name=name,
        workflow_uid=reference.workflow_uid,
        parameters=[{"name": "index"}, {"name": "side", "value": "agent"}],
        labels={names.TASK_LABEL: inputs("index")},
        seconds=head.limits.build_seconds,
        tries=head.max_retries + head.infra_retries,
        secrets=secrets,
    )


def image_template(
    platform: Platform,
    arguments: list[str],
    *,
    name: str,
    workflow_uid: str,
    parameters: list[Parameter],
    labels: Mapping[str, str],
    seconds: int,
    tries: int,
    secrets: Secrets,
) -> Template:
    """A template that builds one image. `arguments` say which; `tries` is how many may follow the first."""
    logins = _logins(platform)
    mounted = _secrets(secrets)
    mounts: list[VolumeMount] = list(CLIENT_MOUNTS)
    for folder, volumes in ((names.REGISTRY_PATH, logins), (names.BUILD_SECRETS_PATH, mounted)):
        for inside, volume in volumes.items():
            mounts.append({"name": volume["name"], "mountPath": f"{folder}/{inside}", "readOnly": True})
    return {
        "name": name,
        "inputs": {"parameters": parameters},
        "metadata": {"labels": {**labels, names.NET_LABEL: names.NET_BUILD}},
        "serviceAccountName": names.BUILD_ACCOUNT,
        "activeDeadlineSeconds": seconds,
        "retryStrategy": retried(tries),
        "volumes": [*VOLUMES, *logins.values(), *mounted.values()],
        "container": container(
            platform,
            ["build", *arguments, "--try", "{{retries}}"],
            workflow_uid=workflow_uid,
            mounts=mounts,
        ),
        "podSpecPatch": pod_patch(platform),
    }


def _logins(platform: Platform) -> dict[str, Volume]:
    """The Secrets with registry logins as volumes, by name: for pushing, and for base images.

    Optional, since the runner can say which one is missing and a pod that waits for it cannot.
    """
    wanted = dict.fromkeys(name for name in (platform.secrets.registry, *platform.secrets.image_pull) if name)
    item: KeyToPath = {"key": ".dockerconfigjson", "path": "config.json"}
    return {
        secret: {
            "name": f"registry-{number}",
            "secret": {"secretName": secret, "items": [item], "optional": True},
        }
        for number, secret in enumerate(wanted)
    }


def _secrets(secrets: Secrets) -> dict[str, Volume]:
    """What a Dockerfile mounts as secrets, as volumes by id; optional as logins are."""
    found: dict[str, Volume] = {}
    for number, (identity, reference) in enumerate(secrets):
        secret, _, key = reference.partition("/")
        item: KeyToPath = {"key": key, "path": names.BUILD_SECRET_FILE}
        found[identity] = {
            "name": f"build-secret-{number}",
            "secret": {"secretName": secret, "items": [item], "optional": True},
        }
    return found
