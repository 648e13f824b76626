"""Which image each sandbox of a task needs, in the order in which Harbor looks for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from argo_harbor.model.services import Compose
from argo_harbor.model.task import EnvironmentConfig, StepConfig, TaskConfig
from argo_harbor.model.taskset import ImageSource, TaskFile
from argo_harbor.sources.compose.build import COMPOSE, DOCKERFILE, Build
from argo_harbor.sources.digest import Content, environment_digest
from argo_harbor.sources.dockerfile import Dockerfile, read_dockerfile
from argo_harbor.sources.tree import Tree

ENVIRONMENT = "environment"
TESTS = "tests"
MAX_DOCKERFILE_BYTES = 1 << 20


class Images(NamedTuple):
    """The images of one task, as `Task` holds them."""

    agent: ImageSource
    verifier: ImageSource | None
    step_verifiers: tuple[ImageSource | None, ...]
    compose: Compose | None = None


class Definition(NamedTuple):
    """Where the image of a sandbox is defined."""

    folder: str
    docker_image: str
    """Empty when the folder defines it."""
    bundles_tests: bool
    dockerfile: str = DOCKERFILE
    """Relative to the folder."""
    target: str = ""
    arguments: tuple[tuple[str, str], ...] = ()
    """Values that the task gives to build arguments."""


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
        compose, agent = None, Definition(ENVIRONMENT, config.environment.docker_image or "", False)
        if f"{ENVIRONMENT}/{COMPOSE}" in self._files:
            compose, main = self._compose(config)
            if isinstance(main, Build):
                agent = _definition(main)
            elif main:
                agent = agent._replace(docker_image=main)
        steps = config.steps or []
        verifier = None if steps else self._verifier(config, None)
        step_verifiers = tuple(self._verifier(config, step) for step in steps)
        return Images(self._source(agent), verifier, step_verifiers, compose)

    def _compose(self, config: TaskConfig) -> tuple[Compose, Build | str | None]:
        # Here, because most suites have no compose file and should not wait for what reads YAML.
        from argo_harbor.sources.compose.document import MAX_BYTES
        from argo_harbor.sources.compose.read import read_compose

        return read_compose(
            self._bytes(f"{ENVIRONMENT}/{COMPOSE}", MAX_BYTES + 1),
            config,
            folder=ENVIRONMENT,
            paths=self._files,
            describe=lambda build: self._source(_definition(build)),
        )

    def _verifier(self, config: TaskConfig, step: StepConfig | None) -> ImageSource | None:
        definition = verifier_definition(config, step, self._files)
        return None if definition is None else self._source(definition)

    def _source(self, definition: Definition) -> ImageSource:
        if definition not in self._made:
            self._made[definition] = self._make(definition)
        return self._made[definition]

    def _make(self, definition: Definition) -> ImageSource:
        folder, image = definition.folder, definition.docker_image
        prefix = f"{folder}/"
        inside = [file for path, file in self._files.items() if path.startswith(prefix)]
        dockerfile = Dockerfile((), "")
        path = f"{prefix}{definition.dockerfile}"
        if not image and path in self._files:
            dockerfile = read_dockerfile(self._bytes(path, MAX_DOCKERFILE_BYTES).decode(errors="replace"))
        # Only the agent's compose file is mapped to containers.
        several = definition.bundles_tests and f"{prefix}{COMPOSE}" in self._files
        return ImageSource(
            kind="compose" if several else "prebuilt" if image else "dockerfile",
            reference=image,
            context=folder,
            dockerfile=definition.dockerfile,
            target=definition.target,
            own_arguments=definition.arguments,
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
            bundles_tests=definition.bundles_tests,
            workdir=dockerfile.workdir,
        )

    def _bytes(self, path: str, most: int) -> bytes:
        data = self._small.get(path)
        if data is None:
            with open(f"{self._tree.root}/{path}", "rb") as handle:
                data = handle.read(most)
        return data


def _definition(build: Build) -> Definition:
    return Definition(build.context, "", False, build.dockerfile, build.target, build.arguments)
