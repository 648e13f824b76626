"""What a task must have beyond a valid task.toml, or cannot have at all."""

from __future__ import annotations

from collections.abc import Iterator

from argo_harbor.errors import Finding
from argo_harbor.model.task import EnvironmentConfig, StepConfig, TaskConfig
from argo_harbor.sources.compose.build import COMPOSE, DOCKERFILE
from argo_harbor.sources.images import ENVIRONMENT, TESTS, verifier_definition
from argo_harbor.sources.tree import INSTRUCTION, Tree

_CODE = "invalid_task_config"
_TEST = "test.sh"


def check_task(config: TaskConfig, tree: Tree) -> Iterator[Finding]:
    """Every finding about missing files and about what cannot run; paths are relative to the task."""
    paths = frozenset(tree.files)
    yield from _unsupported(config)
    yield from _agent_image(config, tree, paths)
    for step in config.steps or (None,):
        folder = f"steps/{step.name}/" if step is not None else ""
        if f"{folder}{INSTRUCTION}" not in paths:
            yield _missing(tree, f"{folder}{INSTRUCTION}", "write what the agent is asked to do")
        yield from _tests(config, step, tree, paths)
    # The archive of a task holds only hashed files, so a task that ignores its own config could not be run.
    if "task.toml" in tree.left_out:
        yield _missing(tree, "task.toml", "")


def _unsupported(config: TaskConfig) -> Iterator[Finding]:
    tables: list[tuple[str, EnvironmentConfig | None]] = [
        ("environment", config.environment),
        ("verifier.environment", config.verifier.environment),
    ]
    for number, step in enumerate(config.steps or ()):
        tables.append((f"steps[{number}].verifier.environment", step.verifier.environment))
    for table, environment in tables:
        if environment is None:
            continue
        if environment.os == "windows":
            message, hint = "Windows containers are not run here", "leave the task out of the selection"
            yield Finding(_CODE, message, hint, file="task.toml", key=f"{table}.os")
        if environment.tpu is not None:
            message, hint = "TPUs are not supported", "leave the task out of the selection"
            yield Finding(_CODE, message, hint, file="task.toml", key=f"{table}.tpu")


def _agent_image(config: TaskConfig, tree: Tree, paths: frozenset[str]) -> Iterator[Finding]:
    if config.environment.docker_image:
        return
    if not {f"{ENVIRONMENT}/{DOCKERFILE}", f"{ENVIRONMENT}/{COMPOSE}"} & paths:
        hint = "write environment/Dockerfile or set environment.docker_image"
        yield _missing(tree, f"{ENVIRONMENT}/{DOCKERFILE}", hint)


def _tests(
    config: TaskConfig, step: StepConfig | None, tree: Tree, paths: frozenset[str]
) -> Iterator[Finding]:
    definition = verifier_definition(config, step, paths)
    if definition is not None and definition.bundles_tests:
        return
    shared = f"{TESTS}/{_TEST}"
    own = f"steps/{step.name}/{shared}" if step is not None else shared
    if own in paths or (shared in paths and own not in tree.left_out):
        return
    hint = "write the script that grades the end state and puts a reward into /logs/verifier"
    yield _missing(tree, own, hint)


def _missing(tree: Tree, path: str, hint: str) -> Finding:
    ignore_file = tree.left_out.get(path)
    if ignore_file is not None:
        return Finding(_CODE, f"is left out by {ignore_file}", f"take it out of {ignore_file}", file=path)
    link = next((link for link in tree.dropped_links if path == link or path.startswith(f"{link}/")), None)
    if link is not None:
        message = (
            f"is missing: {link} is a link to a folder or to nothing, which is not part of a task's content"
        )
        return Finding(_CODE, message, "put the files in its place", file=path)
    return Finding(_CODE, "is missing", hint, file=path)
