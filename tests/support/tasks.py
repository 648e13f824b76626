"""Tasks and tasksets made in memory, for tests that need no folder."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from argo_harbor.model.task import TaskConfig
from argo_harbor.model.taskset import ImageSource, Task, TaskFile, Taskset


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def make_task(
    name: str = "acme/hello",
    config: dict[str, Any] | None = None,
    *,
    index: int = 0,
    environment: str = "",
    executables: tuple[str, ...] = (),
    agent_image: ImageSource | None = None,
    root: Path | None = None,
) -> Task:
    """A task whose task.toml holds `config`; images follow from it as a reader would find them.

    `environment` names the content of its build context: tasks with the same one share an image.
    """
    parsed = TaskConfig.model_validate(config or {})
    built = ImageSource(
        kind="dockerfile",
        context="environment",
        environment_digest=sha(environment or name),
        executables=executables,
        bases=("ubuntu:24.04",),
        workdir="/app",
    )
    docker_image = parsed.environment.docker_image
    agent = agent_image or (
        ImageSource(kind="prebuilt", reference=docker_image) if docker_image is not None else built
    )

    def of_verifier(step: Any = None) -> ImageSource | None:
        own = parsed.verifier_environment(step)
        if own is None:
            return None
        if own is not parsed.environment and own.docker_image:
            return ImageSource(kind="prebuilt", reference=own.docker_image, bundles_tests=True)
        return agent

    steps = tuple(parsed.steps or ())
    return Task(
        name=name,
        folder=name.rpartition("/")[2],
        index=index,
        digest=sha(f"digest of {name}"),
        config=parsed,
        files=(TaskFile("task.toml", 10, 0o644, sha("task.toml")),),
        agent_image=agent,
        verifier_image=None if steps else of_verifier(),
        step_verifier_images=tuple(of_verifier(step) for step in steps),
        root=root,
    )


def make_taskset(*tasks: Task, name: str = "suite", total: int | None = None) -> Taskset:
    """A taskset of the given tasks, or of one plain task."""
    members = tasks or (make_task(),)
    return Taskset(name=name, digest=sha(name), tasks=tuple(members), total=total or len(members))
