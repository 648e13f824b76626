"""The image of each sandbox: a prebuilt one by name, or a build by the key of what goes into it.

Tasks whose builds would give the same image share one key, and so one build and one tag.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from argo_harbor.model.base import canonical_json, sha256_hex
from argo_harbor.model.build import BuildInputs
from argo_harbor.model.plan import ImagePlan, Images
from argo_harbor.model.task import EnvironmentConfig
from argo_harbor.model.taskset import ImageSource, Task
from argo_harbor.planning.build_inputs import NO_INPUTS, arguments_of, secrets_of
from argo_harbor.planning.report import Report
from argo_harbor.registry.reference import DOCKER_HUB, parse_image
from argo_harbor.sources.dockerfile import base_images

BUILDER = "argo-harbor-build-1"
"""Part of every image key. Raise the number when builds change what they make of the same files."""
PLATFORM = "linux/amd64"
DOCKERFILE = "Dockerfile"

_PLAIN = re.compile(r"[A-Za-z0-9._/:@-]+")
_COMPOSE_HINT = "build the verifier from one Dockerfile or name a docker_image; leave it out with --tasks"


def image_key(source: ImageSource, arguments: Mapping[str, str] | None = None) -> str:
    """64 hex over all that decides what a build makes; base images count by the name in the Dockerfile.

    Harbor's digest of the environment leaves out executable bits and links, so both are in the key besides.
    `arguments` are the values of build arguments that the Dockerfile declares.
    """
    decisive = {
        "environment": source.environment_digest,
        "executables": sorted(source.executables),
        "links": sorted(source.links),
        "platform": PLATFORM,
        "build_args": dict(arguments or {}),
        "builder": BUILDER,
    }
    # Only where they are not the usual ones, so that most images keep their keys.
    decisive |= {"dockerfile": source.dockerfile} if source.dockerfile != DOCKERFILE else {}
    decisive |= {"target": source.target} if source.target else {}
    return sha256_hex(canonical_json(decisive))


def mirrored(reference: str, mirror: str) -> str:
    """Where to pull an image from: what is on Docker Hub from its mirror, if there is one.

    Nodes cannot be told of a mirror by a run, so it has to be in the name. A text that is no reference stays
    as it is.
    """
    if not mirror:
        return reference
    try:
        name = parse_image(reference)
    except ValueError:
        return reference
    return str(name._replace(registry=mirror)) if name.registry == DOCKER_HUB else reference


class ImagePlanner:
    """Plans the images of tasks for one registry; `mirror` is the platform's for Docker Hub, or empty.
    `inputs` are the values that builds are given."""

    def __init__(self, registry: str, mirror: str = "", inputs: BuildInputs = NO_INPUTS) -> None:
        self._registry = registry
        self._mirror = mirror
        self._inputs = inputs
        self._keys: dict[tuple[object, ...], str] = {}

    def plan(self, task: Task, report: Report) -> tuple[Images, tuple[ImagePlan | None, ...]]:
        """Images of the task, and those of its steps' separate verifiers.

        Reports `invalid_compose_file`, `invalid_task_config` for a reference that is none, and
        `env_not_granted` for a build secret.
        """
        config = task.config
        agent = self._image(task.agent_image, config.environment.workdir, "environment.docker_image", report)
        if not task.steps:
            verifier = self._of_verifier(task.verifier_image, config.verifier_environment(), "", report)
            return Images(agent=agent, verifier=verifier), ()
        of_steps = tuple(
            self._of_verifier(source, config.verifier_environment(step), f"steps[{number}].", report)
            for number, (step, source) in enumerate(zip(task.steps, task.step_verifier_images, strict=True))
        )
        first = next((image for image in of_steps if image is not None), None)
        return Images(agent=agent, verifier=first), of_steps

    def of_service(self, source: ImageSource, key: str, report: Report) -> ImagePlan:
        """Image of a container beside the sandbox; `key` is its place in the compose file. Reports as
        `plan`."""
        return self._image(source, None, key, report)

    def _of_verifier(
        self, source: ImageSource | None, own: EnvironmentConfig | None, table: str, report: Report
    ) -> ImagePlan | None:
        if source is None or own is None:
            return None
        return self._image(source, own.workdir, f"{table}verifier.environment.docker_image", report)

    def _image(self, source: ImageSource, workdir: str | None, key: str, report: Report) -> ImagePlan:
        if source.kind == "compose":
            report.refuse(
                "invalid_compose_file",
                f"{source.context}/docker-compose.yaml: services beside a verifier are not supported",
                hint=_COMPOSE_HINT,
            )
        built = source.kind == "dockerfile"
        plain = bool(_PLAIN.fullmatch(source.reference))
        if source.kind == "prebuilt" and not plain:
            report.refuse(
                "invalid_task_config",
                f"{source.reference!r} is no image reference",
                key=key,
                hint='use letters, digits and ". _ / : @ -" only',
            )
        arguments = arguments_of(source, self._inputs) if built else {}
        written = source.variable_bases
        image = self._key(source, arguments) if built else ""
        prebuilt = mirrored(source.reference, self._mirror) if plain else ""
        return ImagePlan(
            kind="build" if built else "prebuilt",
            reference=f"{self._registry}/env:{image[:32]}" if built else prebuilt,
            key=image,
            context=source.context,
            dockerfile=source.dockerfile,
            target=source.target,
            arguments=tuple(arguments.items()),
            secrets=secrets_of(source, self._inputs, report) if built else (),
            environment_digest=source.environment_digest,
            bases=base_images(written, arguments) if built and written else source.bases,
            bundles_tests=source.bundles_tests,
            workdir=workdir or source.workdir,
        )

    def _key(self, source: ImageSource, arguments: Mapping[str, str]) -> str:
        parts = (
            *(source.environment_digest, source.executables, source.links),
            *(source.dockerfile, source.target, tuple(arguments.items())),
        )
        known = self._keys.get(parts)
        if known is None:
            known = self._keys[parts] = image_key(source, arguments)
        return known
