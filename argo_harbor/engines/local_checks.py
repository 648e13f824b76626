"""What this machine cannot do with a plan, found before a run starts: all findings at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from argo_harbor.engines.base import SubmitOptions
from argo_harbor.engines.bases import BaseKind, ChosenBase, all_images
from argo_harbor.errors import Finding, PlatformError, Refused
from argo_harbor.model.plan import ImagePlan, RunPlan, TaskPlan
from argo_harbor.model.taskset import Task, Taskset, Warned
from argo_harbor.planning.local import local_findings, local_network
from argo_harbor.sandbox.context import check_context
from argo_harbor.sandbox.dockerfile import check_dockerfile, plan_build
from argo_harbor.sandbox.dockerfile_image import check_image_dockerfile
from argo_harbor.sandbox.host import sandbox_available


def check_local(
    plan: RunPlan, taskset: Taskset, options: SubmitOptions, choose: Callable[[], ChosenBase]
) -> list[Warned]:
    """Warnings about a plan that can run here. `choose` decides what sandboxes start from.

    Raises: Refused with every finding about plan and Dockerfiles; PlatformError `sandbox_unavailable`.
    """
    findings = local_findings(plan, allow_unfenced_network=options.allow_unfenced_network)
    if not findings or options.base == "preview":
        # Builders may take seconds to answer: a run that cannot be accepted anyway does not wait for them.
        base = choose()
        tasks = {task.index: task for task in taskset.tasks}
        for part in plan.parts:
            for image in all_images(part):
                findings += image_findings(image, tasks[part.index], base.kind)
            findings += _image_users(part, base)
    if findings:
        raise Refused.of(findings)
    unavailable = sandbox_available(options.scratch)
    if unavailable is not None:
        raise PlatformError(unavailable.code, unavailable.message, unavailable.hint)
    return list(_warnings(plan))


def network_of(part: TaskPlan) -> Literal["none", "unfenced"]:
    """What a task's sandboxes have on this machine."""
    rule = local_network(part)
    return "unfenced" if rule is not None and rule.mode == "public" else "none"


def image_findings(image: ImagePlan, task: Task, base: BaseKind) -> Iterator[Finding]:
    """What keeps an image of a task from being built here on that base; nothing of a prebuilt one."""
    if task.root is None or not image.key:
        return
    folder = task.root / image.context
    name = f"{task.folder}/{image.context}/{image.dockerfile}"
    text = (folder / image.dockerfile).read_text(encoding="utf-8", errors="replace")
    if base == "image":
        found = check_image_dockerfile(text, file=name)
    else:
        found = _preview_findings(text, folder, name, dict(image.arguments))
        if image.target:
            found.append(_unsupported(f"the preview base has no build stage {image.target}", name))
    if image.secrets:
        named = ", ".join(reference for _, reference in image.secrets)
        found.append(
            Finding(
                "local_env_unsupported",
                f"mounts build secrets ({named}), and Kubernetes Secrets exist only in a cluster",
                "leave the task out with --tasks, or build it in a cluster",
                file=name,
            )
        )
    yield from (replace(finding, task=finding.task or task.name) for finding in found)


def _unsupported(message: str, name: str) -> Finding:
    hint = "use a machine with podman, buildah or docker (--base image), or a cluster"
    return Finding("preview_unsupported", message, hint, file=name)


def _image_users(part: TaskPlan, base: ChosenBase) -> Iterator[Finding]:
    """Images that are taken as they are and would run as somebody else."""
    for image in all_images(part):
        facts = base.images.get(image.reference)
        if not image.key and facts is not None and not facts.runs_as_root:
            yield Finding(
                "local_user_unsupported",
                f"{image.reference} runs as {facts.user}, and sandboxes of the local engine as root",
                "leave the task out with --tasks, or compile it for a cluster",
                part.name,
                f"{part.folder}/task.toml",
            )


def _preview_findings(text: str, folder: Path, name: str, arguments: Mapping[str, str]) -> list[Finding]:
    found = check_dockerfile(text, file=name, build_args=arguments)
    return found or check_context(plan_build(text, file=name, build_args=arguments), folder, file=name)


def _warnings(plan: RunPlan) -> Iterator[Warned]:
    narrowed = [part for part in plan.parts if part.rules.narrowed]
    if narrowed:
        yield Warned(
            "network_narrowed",
            f"{len(narrowed)} of {len(plan.parts)} tasks ask for more network than the profile "
            f"{plan.head.profile.name} leaves them: they run without it",
            hint="argo-harbor profiles show says what a profile allows",
        )
