"""Carry out a Dockerfile on the preview base, once per image of a run; see `bases.py` for where it lies."""

from __future__ import annotations

import asyncio
import posixpath
import shlex
from collections.abc import Mapping
from pathlib import Path

from argo_harbor.sandbox.base import ImageBuildFailed, TransferFailed
from argo_harbor.sandbox.bases import Shelf
from argo_harbor.sandbox.bubblewrap import BubblewrapSandbox
from argo_harbor.sandbox.context import Context, ContextError
from argo_harbor.sandbox.dockerfile import BuildPlan, Copy, MakeFolder, Run, plan_build
from argo_harbor.sandbox.image import Base
from argo_harbor.sandbox.locks import exclusive_async
from argo_harbor.sandbox.preview import Preview
from argo_harbor.sandbox.scratch import remove_scratch
from argo_harbor.sandbox.transfer import temporary_archive

RUN_SECONDS = 600.0
LOG_BYTES = 8192
"""Of a failing step's output, from its end."""
_UNPACK = 'tar -xf "$1" -C "$2" --no-same-owner && rm -- "$1"'


async def ensure_base(
    scratch: Path,
    *,
    preview: Preview,
    key: str,
    context: Path,
    dockerfile: str = "Dockerfile",
    build_args: Mapping[str, str] | None = None,
) -> Base:
    """The base of the image `key`, built from the folder `context` by whoever asks first, in any process.

    `scratch` is the run's; `key` a name without slashes, such as the image key.

    Raises: ImageBuildFailed; Refused for a Dockerfile that the preview cannot carry out; SandboxStartFailed.
    """
    shelf = Shelf(scratch, key)
    async with exclusive_async(shelf.lock):
        made = shelf.recall()
        if made is not None:
            return made
        file = context / dockerfile
        plan = plan_build(file.read_text(encoding="utf-8"), file=str(file), build_args=build_args)
        # What a builder that was killed has left.
        for leftover in (shelf.layers, shelf.unfinished):
            await asyncio.to_thread(remove_scratch, leftover)
        try:
            made = await build_base(
                plan, context, preview=preview, folder=shelf.unfinished, layers=shelf.layers
            )
        except ImageBuildFailed as error:
            shelf.remember(error)
            raise
        shelf.remember(made)
    return made


async def build_base(plan: BuildPlan, context: Path, *, preview: Preview, folder: Path, layers: Path) -> Base:
    """Carry out the steps in a sandbox whose changes become the folder `layers`.

    Neither folder may exist; `folder` is gone afterwards. Raises: ImageBuildFailed, SandboxStartFailed.
    """
    env, workdir = dict(plan.env), plan.workdir
    if not plan.steps:
        return Base(from_image=plan.from_image, env=env, workdir=workdir)
    sandbox = BubblewrapSandbox(folder, ground=preview, base=Base.bare(plan.from_image))
    await sandbox.start()
    try:
        for step in plan.steps:
            match step:
                case Run():
                    await _run(sandbox, step)
                case Copy():
                    await _copy(sandbox, step, context)
                case MakeFolder():
                    await _must(sandbox, step.text, _words("mkdir", "-p", "--", step.path))
        await sandbox.stop_keeping_layers(layers)
    finally:
        await asyncio.shield(sandbox.stop())
    return Base(from_image=plan.from_image, env=env, workdir=workdir, layers=str(layers))


async def _run(sandbox: BubblewrapSandbox, step: Run) -> None:
    await _must(sandbox, step.text, step.command, cwd=step.cwd, env=step.env, seconds=RUN_SECONDS)


async def _copy(sandbox: BubblewrapSandbox, step: Copy, folder: Path) -> None:
    is_folder = await sandbox.exec(_words("test", "-d", step.target), cwd="/")
    try:
        context = Context(folder)
        with temporary_archive() as archive:
            into = await asyncio.to_thread(
                context.pack, step, archive, target_is_folder=is_folder.return_code == 0
            )
            await sandbox.unpack(archive, into)
        archives = [posixpath.join(into, name) for name in context.archives(step)]
    except (ContextError, TransferFailed, OSError) as error:
        raise ImageBuildFailed(step.text, str(error)) from error
    for path in archives:
        await _must(sandbox, step.text, _words("sh", "-c", _UNPACK, "unpack", path, into))


async def _must(
    sandbox: BubblewrapSandbox,
    text: str,
    command: str,
    *,
    cwd: str = "/",
    env: Mapping[str, str] | None = None,
    seconds: float = RUN_SECONDS,
) -> None:
    result = await sandbox.exec(command, cwd=cwd, env=env, timeout_sec=seconds)
    if result.return_code == 0 and not result.timed_out:
        return
    ending = f"ended after {seconds:.0f} s" if result.timed_out else f"exit status {result.return_code}"
    output = f"{result.stdout.rstrip()}\n{result.stderr.rstrip()}".strip()
    raise ImageBuildFailed(text, f"{output}\n{ending}"[-LOG_BYTES:])


def _words(*words: str) -> str:
    return f"exec {shlex.join(words)}"
