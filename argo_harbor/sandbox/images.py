"""Images of a run on this machine: built or taken as they are, and laid out for sandboxes, each once.

Only the engine makes them, because builders need its environment; trials find what it left by `find_image`.
Build steps have no network. What a build leaves with the builder is removed once its files are laid out.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import signal
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from argo_harbor.sandbox.base import ImageBuildFailed, SandboxStartFailed, TransferFailed, TransferRefused
from argo_harbor.sandbox.bases import Shelf
from argo_harbor.sandbox.builder import Builder, BuilderError
from argo_harbor.sandbox.image import Base
from argo_harbor.sandbox.locks import exclusive_async
from argo_harbor.sandbox.output import open_tail
from argo_harbor.sandbox.preview import DEFAULT_PATH
from argo_harbor.sandbox.rootfs import receive_rootfs
from argo_harbor.sandbox.scratch import make_owned_folder, remove_scratch
from argo_harbor.sandbox.transfer import PipeReader

BUILD_SECONDS = 1800.0
"""Of a whole build: builders have no limit for one step."""
EXPORT_SECONDS = 1800.0
LOG_BYTES = 8192
TERM_SECONDS = 3.0
"""For a builder to clean up after SIGTERM."""
_STEP = re.compile(r"^(?:\[\d+/\d+\] )?(step \d.*)$", re.IGNORECASE | re.MULTILINE)
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")


def prebuilt_key(reference: str) -> str:
    """The key of an image that is not built here: 64 hex."""
    return hashlib.sha256(f"prebuilt {reference}".encode()).hexdigest()


def find_image(scratch: Path, key: str) -> Base:
    """The image that the engine has made ready. Raises: ImageBuildFailed; SandboxStartFailed for any
    other."""
    base = Shelf(scratch, key).recall()
    if base is None:
        raise SandboxStartFailed("the image was not made ready before the trial")
    return base


@dataclass(frozen=True, slots=True)
class Recipe:
    """What an image is built of."""

    context: Path
    dockerfile: str = "Dockerfile"
    """Relative to the context."""
    target: str = ""
    """Build stage to stop at; empty for the last."""
    arguments: tuple[tuple[str, str], ...] = ()
    """Values of build arguments."""


async def prepare_built(scratch: Path, *, builder: Builder, key: str, recipe: Recipe) -> Base:
    """Build an image and lay it out as the base `key`, unless that was done already.

    Raises: ImageBuildFailed; OSError when the disk is full.
    """
    return await _prepare(scratch, builder, key, recipe=recipe)


async def prepare_prebuilt(scratch: Path, *, builder: Builder, reference: str) -> Base:
    """Lay an image out that the builder has. Raises like `prepare_built`."""
    return await _prepare(scratch, builder, prebuilt_key(reference), reference=reference)


async def _prepare(
    scratch: Path, builder: Builder, key: str, *, recipe: Recipe | None = None, reference: str = ""
) -> Base:
    shelf = Shelf(scratch, key)
    async with exclusive_async(shelf.lock):
        made = shelf.recall()
        if made is not None:
            return made
        for leftover in (shelf.layers, shelf.unfinished):
            await asyncio.to_thread(remove_scratch, leftover)
        tag = f"localhost/argo-harbor/{key[:32]}:{os.getpid()}"
        try:
            if recipe is not None:
                await _build(builder, tag, recipe)
                reference = tag
            made = await _lay_out(builder, reference, shelf)
        except ImageBuildFailed as error:
            shelf.remember(error)
            raise
        finally:
            await asyncio.shield(asyncio.to_thread(remove_scratch, shelf.unfinished))
            if reference == tag:
                await asyncio.shield(_run(builder.remove_image(tag), BUILD_SECONDS))
        shelf.remember(made)
    return made


async def _build(builder: Builder, tag: str, recipe: Recipe) -> None:
    command = builder.build(
        tag,
        str(recipe.context),
        str(recipe.context / recipe.dockerfile),
        target=recipe.target,
        arguments=recipe.arguments,
    )
    status, output = await _run(command, BUILD_SECONDS)
    if status != 0:
        raise ImageBuildFailed(_step_of(output) or f"{builder.name} build", output)


async def _lay_out(builder: Builder, reference: str, shelf: Shelf) -> Base:
    try:
        facts = await asyncio.to_thread(builder.facts, reference)
        if facts is None:
            raise BuilderError(f"{reference} is gone")
    except BuilderError as error:
        raise ImageBuildFailed(f"look at {reference}", str(error)) from error
    if not facts.runs_as_root:
        raise ImageBuildFailed(f"USER {facts.user}", "sandboxes of this machine have no user but root")
    make_owned_folder(shelf.unfinished, 0o755)
    try:
        await _export(builder, reference, shelf.unfinished / "root", facts.workdir)
    except (TransferFailed, TransferRefused, BuilderError) as error:
        raise ImageBuildFailed(f"read the files of {reference}", str(error)) from error
    shelf.unfinished.rename(shelf.layers)
    return Base(
        base="image",
        env={"PATH": DEFAULT_PATH, "HOME": "/root"} | dict(facts.env),
        workdir=facts.workdir,
        layers=str(shelf.layers),
        digest=facts.digest,
    )


async def _export(builder: Builder, reference: str, target: Path, workdir: str) -> None:
    """Write the files of an image to `target`. Raises: TransferFailed, TransferRefused, BuilderError."""
    if builder.name == "buildah":
        with tempfile.TemporaryDirectory() as context:
            file = Path(context) / "Dockerfile"
            file.write_text(f"FROM {reference}\n")
            await _stream(builder.flatten(context, str(file)), target, workdir)
        return
    status, output = await _run(builder.create(reference), EXPORT_SECONDS)
    container = output.strip().rpartition("\n")[2]
    if status != 0 or not container.isalnum():
        raise BuilderError(output.strip() or f"exit status {status}")
    try:
        await _stream([builder.program, "export", container], target, workdir)
    finally:
        await asyncio.shield(_run([builder.program, "rm", "--force", container], EXPORT_SECONDS))


async def _stream(command: Sequence[str], target: Path, workdir: str) -> None:
    reader, writer = os.pipe()
    complaints, complaints_writer = await open_tail(LOG_BYTES)
    with PipeReader(reader, EXPORT_SECONDS) as pipe:
        try:
            process = await _start(command, stdout=writer, stderr=complaints_writer)
        finally:
            os.close(writer)
            os.close(complaints_writer)
        receiving = asyncio.create_task(asyncio.to_thread(receive_rootfs, pipe, target, workdir=workdir))
        try:
            # Shielded, because the thread must have ended before its pipe is closed.
            await asyncio.shield(receiving)
            await process.wait()
        except TransferRefused as error:
            await _end(process)
            raise TransferRefused(complaints.finish().strip() or str(error)) from error
        except BaseException:
            pipe.abandon()
            await asyncio.wait([receiving])
            raise
        finally:
            await asyncio.shield(_end(process))
            complaints.close()
    if process.returncode != 0:
        raise BuilderError(complaints.finish().strip() or f"exit status {process.returncode}")


async def _run(command: Sequence[str], seconds: float) -> tuple[int, str]:
    """Exit status and the end of everything a builder says; cancelling ends it."""
    tail, writer = await open_tail(LOG_BYTES)
    try:
        process = await _start(command, stdout=writer, stderr=writer)
    finally:
        os.close(writer)
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
            await tail.closed
    except TimeoutError:
        await _end(process)
        return 124, f"{tail.finish()}\nended after {seconds:.0f} s"
    except BaseException:
        await asyncio.shield(_end(process))
        raise
    finally:
        tail.close()
    return process.returncode or 0, tail.finish()


async def _start(command: Sequence[str], *, stdout: int, stderr: int) -> asyncio.subprocess.Process:
    """Start a builder in a session of its own that ends with us."""
    try:
        return await asyncio.create_subprocess_exec(
            *["setpriv", "--pdeathsig", "TERM", "--"],
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=_environment(os.environ),
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        raise ImageBuildFailed(command[0], str(error.strerror)) from error


def _environment(caller: Mapping[str, str]) -> dict[str, str]:
    """The caller's, because a builder finds its images and its daemon by it; but a proxy, which may carry a
    password, would be handed on to build steps."""
    return {name: value for name, value in caller.items() if name.lower() not in _PROXIES}


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a builder with everything it started; nothing happens when it has ended by itself."""
    if process.returncode is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), TERM_SECONDS)
    await process.wait()


def _step_of(output: str) -> str:
    """The last step that a builder announced."""
    steps = _STEP.findall(output)
    return steps[-1].strip()[:200] if steps else ""
