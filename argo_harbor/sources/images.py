"""Which image each sandbox of a task needs, in the order in which Harbor looks for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from argo_harbor.model.task import EnvironmentConfig, StepConfig, TaskConfig
from argo_harbor.model.taskset import ImageSource, TaskFile
from argo_harbor.sources.digest import Content, environment_digest
from argo_harbor.sources.dockerfile import Dockerfile, read_dockerfile
from argo_harbor.sources.tree import Tree

DOCKERFILE = "Dockerfile"
COMPOSE = "docker-compose.yaml"
ENVIRONMENT = "environment"
TESTS = "tests"
MAX_DOCKERFILE_BYTES = 1 << 20


class Images(NamedTuple):
    """The images of one task, as `Task` holds them."""

    agent: ImageSource
    verifier: ImageSource | None
    step_verifiers: tuple[ImageSource | None, ...]


class Definition(NamedTuple):
    """Where the image of a verifier is defined."""

    folder: str
    docker_image: str
    """Empty when the folder defines it."""
    bundles_tests: bool


def verifier_definition(
    config: TaskConfig, step: StepConfig | None, paths: Mapping[str, TaskFile] | frozenset[str]
) -> Definition | None:
    """The definition that applies to a task or step, None when it grades in the agent's sandbox.

    First hit wins: the step's image, the step's tests folder, the task's verifier image, the task's tests
    folder, the agent's environment. Only in the last case does Harbor upload the tests.
    """
    if config.verifier_environment(step) is None:
        return None
    levels: list[tuple[EnvironmentConfig | None, str]] = [(config.verifier.environment, TESTS)]
    if step is not None:
        levels.insert(0, (step.verifier.environment, f"steps/{step.name}/{TESTS}"))
    for environment, folder in levels:
        if environment is not None and environment.docker_image:
            return Definition(folder, environment.docker_image, True)
        if f"{folder}/{DOCKERFILE}" in paths or f"{folder}/{COMPOSE}" in paths:
            return Definition(folder, "", True)
    return Definition(ENVIRONMENT, config.environment.docker_image or "", False)


class ImageReader:
    """Makes the ImageSource of each definition of one task, each folder read once."""

    def __init__(self, tree: Tree, content: Content) -> None:
        self._tree = tree
        self._files = {file.path: file for file in content.files}
        self._small = content.small
        self._made: dict[Definition, ImageSource] = {}

    def read(self, config: TaskConfig) -> Images:
        """Raises OSError."""
        agent = self._source(Definition(ENVIRONMENT, config.environment.docker_image or "", False))
        steps = config.steps or []
        verifier = None if steps else self._verifier(config, None)
        return Images(agent, verifier, tuple(self._verifier(config, step) for step in steps))

    def _verifier(self, config: TaskConfig, step: StepConfig | None) -> ImageSource | None:
        definition = verifier_definition(config, step, self._files)
        return None if definition is None else self._source(definition)

    def _source(self, definition: Definition) -> ImageSource:
        if definition not in self._made:
            self._made[definition] = self._make(definition)
        return self._made[definition]

    def _make(self, definition: Definition) -> ImageSource:
        folder, image, bundles_tests = definition
        prefix = f"{folder}/"
        inside = [file for path, file in self._files.items() if path.startswith(prefix)]
        dockerfile = Dockerfile((), "")
        if not image and f"{prefix}{DOCKERFILE}" in self._files:
            dockerfile = read_dockerfile(self._text(f"{prefix}{DOCKERFILE}"))
        return ImageSource(
            kind="compose" if f"{prefix}{COMPOSE}" in self._files else "prebuilt" if image else "dockerfile",
            reference=image,
            context=folder,
            environment_digest=environment_digest(self._tree, folder, docker_image=image, known=self._small),
            executables=tuple(file.path[len(prefix) :] for file in inside if file.mode & 0o111),
            links=tuple(
                f"{file.path[len(prefix) :]} {file.sha256}"
                for file in inside
                if file.path in self._tree.links
            ),
            arguments=dockerfile.arguments,
            secrets=dockerfile.secrets,
            required_secrets=dockerfile.required_secrets,
            bases=dockerfile.bases,
            variable_bases=dockerfile.variable_bases,
            bundles_tests=bundles_tests,
            workdir=dockerfile.workdir,
        )

    def _text(self, path: str) -> str:
        data = self._small.get(path)
        if data is None:
            with open(f"{self._tree.root}/{path}", "rb") as handle:
                data = handle.read(MAX_DOCKERFILE_BYTES)
        return data.decode(errors="replace")
