"""A sandbox on this machine: one bubblewrap from start to stop, which commands enter.

The first process inside is a shell that waits on a pipe from us: it collects orphans, and it ends with us.
Its end is the end of everything inside, because it is the first process of its process namespace. Commands
enter the namespaces with nsenter, so what they leave running stays for the next one.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from argo_harbor.errors import Refused
from argo_harbor.sandbox import transfer
from argo_harbor.sandbox.archive import ArchiveCutShort
from argo_harbor.sandbox.base import (
    OUTPUT_LIMIT,
    Downloaded,
    ExecResult,
    Network,
    Sandbox,
    SandboxDied,
    SandboxStartFailed,
    TransferFailed,
)
from argo_harbor.sandbox.commands import HOST_ENV, bwrap_command, enter_command, entry_script
from argo_harbor.sandbox.ground import Ground
from argo_harbor.sandbox.host import SPAWN, as_sandbox_id
from argo_harbor.sandbox.image import Base
from argo_harbor.sandbox.output import Tail, open_tail
from argo_harbor.sandbox.process import TERM_SECONDS, end_command, in_memory, wait_readable
from argo_harbor.sandbox.scratch import give_away, make_owned_folder, remove_scratch

START_SECONDS = 30.0
DRAIN_SECONDS = 0.25
"""For output still in a pipe after its command ended; only waited for when something left running holds the
pipe."""
TRANSFER_SECONDS = 600.0

_ROOT = ("root", "0", 0, None)


class BubblewrapSandbox(Sandbox):
    """One sandbox; see `Sandbox` for what the methods promise.

    It ends when the thread that started it does: Linux tells a child of the death of its parent's thread.
    """

    def __init__(
        self,
        folder: Path,
        *,
        ground: Ground,
        base: Base,
        network: Network = "none",
        env: Mapping[str, str] | None = None,
        workdir: str | None = None,
    ) -> None:
        """`folder` must not exist and lie in the run's scratch folder; `stop` removes it.

        `env` is added to the image's variables; `workdir` replaces the image's.
        """
        self.folder = folder
        self._ground = ground
        self._base = base
        self._network = network
        self._env = base.env | dict(env or {})
        self._workdir = workdir or base.workdir
        self._process: asyncio.subprocess.Process | None = None
        self._first = -1
        """Pid of the first process inside, and a handle on it that no other process can take over."""
        self._first_handle = -1
        self._left_open: list[Tail] = []

    async def start(self) -> None:
        self.folder.mkdir()
        self.folder.chmod(0o711)
        for kind in ("upper", "work"):
            (self.folder / kind).mkdir()
            (self.folder / kind).chmod(0o711)
            for tree in self._ground.trees(self._base.layers):
                make_owned_folder(self.folder / kind / tree.name, 0o755)
        if self._network == "unfenced":
            self._add_resolver()
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._start_bwrap()
        except TimeoutError:
            await self.stop()
            raise SandboxStartFailed(f"no sandbox within {START_SECONDS:.0f} s") from None
        except BaseException:
            await asyncio.shield(self.stop())
            raise

    def _add_resolver(self) -> None:
        """Names resolve as on the host. The file goes to the sandbox's own layer: other networks have
        none."""
        with suppress(FileNotFoundError):
            text = Path("/etc/resolv.conf").read_bytes()
            etc = make_owned_folder(self.folder / "upper" / "root" / "etc", 0o755)
            (etc / "resolv.conf").write_bytes(text)
            (etc / "resolv.conf").chmod(0o644)
            give_away(etc / "resolv.conf")

    async def _start_bwrap(self) -> None:
        info, info_writer = os.pipe()
        try:
            command = bwrap_command(
                self._ground, self._base, self.folder, network=self._network, info_fd=info_writer
            )
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    pass_fds=(info_writer,),
                    env=HOST_ENV,
                    **SPAWN,
                )
            except OSError as error:
                raise SandboxStartFailed(f"{self._ground.bwrap}: {error.strerror}") from error
            finally:
                os.close(info_writer)
            output, complaints = self._process.stdout, self._process.stderr
            if output is None or complaints is None:
                raise SandboxStartFailed("the sandbox has no output")
            if await output.readline() != b"ready\n":
                said = (await complaints.read()).decode(errors="replace").strip()
                raise SandboxStartFailed(said or "the first process ended at once")
            # Written before the first process could run, so this never waits.
            self._first = int(json.loads(os.read(info, 4096))["child-pid"])
            self._first_handle = os.pidfd_open(self._first)
        finally:
            os.close(info)

    async def stop(self) -> None:
        await self._end_everything()
        await asyncio.to_thread(remove_scratch, self.folder)

    async def stop_keeping_layers(self, target: Path) -> None:
        """Like `stop`, but what the sandbox changed becomes the folder `target`: the layers of a `Base`."""
        self._must_live()
        await self._end_everything()
        (self.folder / "upper").rename(target)
        await asyncio.to_thread(remove_scratch, self.folder)

    async def _end_everything(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                if self._first_handle >= 0:
                    signal.pidfd_send_signal(self._first_handle, signal.SIGKILL)
                else:
                    # Its group: a child that still waits for bwrap to map its user would wait for ever.
                    os.killpg(self._process.pid, signal.SIGKILL)
            if self._process.stdin is not None:
                self._process.stdin.close()
            # bwrap ends after the first process, and that is gone only when everything inside is.
            await self._process.wait()
            self._process = None
        if self._first_handle >= 0:
            os.close(self._first_handle)
            self._first_handle = -1
        for tail in self._left_open:
            tail.close()
        self._left_open.clear()

    async def exec(
        self,
        command: str,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | int | None = None,
        timeout_sec: float | None = None,
    ) -> ExecResult:
        if user not in _ROOT:
            raise Refused(
                "local_user_unsupported",
                f"sandboxes of this machine have no user but root, and {user!r} was asked for",
                "run the task on a cluster, or without a user",
            )
        script = entry_script(
            command,
            cwd=cwd or self._workdir,
            env=self._env | dict(env or {}),
            shells=self._ground.shells,
        )
        with in_memory(script.encode("utf-8", errors="surrogateescape")) as stdin:
            return await self._run(self._ground.inside("sh"), stdin=stdin.fileno(), timeout_sec=timeout_sec)

    async def _run(self, argv: Iterable[str], *, stdin: int, timeout_sec: float | None) -> ExecResult:
        tails = [await open_tail(OUTPUT_LIMIT) for _ in range(2)]
        try:
            process = await self._enter(argv, stdin=stdin, stdout=tails[0][1], stderr=tails[1][1])
        except BaseException:
            for tail, _ in tails:
                tail.close()
            raise
        finally:
            for _, writer in tails:
                os.close(writer)
        timed_out = False
        try:
            async with asyncio.timeout(timeout_sec):
                await process.wait()
        except TimeoutError:
            timed_out = True
            await end_command(process)
        except BaseException:
            for tail, _ in tails:
                tail.finish()
            await asyncio.shield(end_command(process))
            raise
        finally:
            self._left_open += [tail for tail, _ in tails]
        await asyncio.wait([tail.closed for tail, _ in tails], timeout=DRAIN_SECONDS)
        self._left_open = [tail for tail in self._left_open if not tail.closed.done()]
        self._must_live()
        status = process.returncode or 0
        return ExecResult(
            stdout=tails[0][0].finish(),
            stderr=tails[1][0].finish(),
            return_code=128 - status if status < 0 else status,
            timed_out=timed_out,
        )

    async def _enter(
        self, argv: Iterable[str], *, stdin: int, stdout: int, stderr: int
    ) -> asyncio.subprocess.Process:
        """Start a program inside, in a session of its own, with the capabilities of a container's root."""
        self._must_live()
        command = [*enter_command(self._ground, self._first, network=self._network), *argv]
        return await asyncio.create_subprocess_exec(
            *command, stdin=stdin, stdout=stdout, stderr=stderr, env=HOST_ENV, **SPAWN
        )

    def _must_live(self) -> None:
        if self._process is None or self._first_handle < 0:
            raise SandboxDied("the sandbox is not running")
        if wait_readable(self._first_handle, 0):
            raise SandboxDied("the first process of the sandbox ended")

    async def kill_leftovers(self) -> None:
        """Enters the process namespace alone, so that no program of the sandbox takes part."""
        self._must_live()
        # Its parent lies outside exactly when the shell did get into the namespace; anywhere else the same
        # command would end everything of this user.
        process = await asyncio.create_subprocess_exec(
            *as_sandbox_id(self._ground.setpriv),
            *[
                self._ground.nsenter,
                "--target",
                str(self._first),
                "--user",
                "--pid",
                "--preserve-credentials",
            ],
            *["--", "/bin/sh", "-c", '[ "$PPID" = 0 ] && kill -KILL -1; exit 0'],
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env=HOST_ENV,
            **SPAWN,
        )
        await process.wait()

    async def upload(self, source: Path, target: str) -> None:
        folder, name = (target, "") if source.is_dir() else os.path.split(target)
        with transfer.temporary_archive() as archive:
            await asyncio.to_thread(transfer.pack, source, archive, name=name)
            await self.unpack(archive, folder)

    async def unpack(self, archive: BinaryIO, folder: str) -> None:
        """Unpack a tar archive of ours into a folder inside. Raises: TransferFailed, SandboxDied."""
        archive.flush()
        archive.seek(0)
        mkdir, tar = (shlex.join(self._ground.inside(program)) for program in ("mkdir", "tar"))
        unpacking = f'{mkdir} -p -- "$1" && exec {tar} -x -p --no-same-owner -C "$1" -f -'
        argv = [*self._ground.inside("sh"), "-c", unpacking, "unpack", folder]
        result = await self._run(argv, stdin=archive.fileno(), timeout_sec=TRANSFER_SECONDS)
        if result.return_code != 0:
            raise TransferFailed(f"{folder}: {result.stderr.strip() or f'status {result.return_code}'}")

    async def download_folder(self, source: str, target: Path) -> Downloaded:
        return await self._download(source, ".", lambda pipe: transfer.receive_folder(pipe, target))

    async def download_file(self, source: str, target: Path) -> Downloaded:
        folder, name = os.path.split(source.rstrip("/"))
        return await self._download(
            folder or "/", f"./{name}", lambda pipe: transfer.receive_file(pipe, name=name, target=target)
        )

    async def _download(
        self, folder: str, member: str, receive: Callable[[transfer.PipeReader], Downloaded]
    ) -> Downloaded:
        packing = [
            *self._ground.inside("tar"),
            "-c",
            "--format=gnu",
            "--numeric-owner",
            "--hard-dereference",
            "--ignore-failed-read",
        ]
        packing += ["--no-recursion"] if member != "." else []
        packing += ["-C", folder, "-f", "-", "--", member]
        reader, writer = os.pipe()
        complaints, complaints_writer = await open_tail(4096)
        self._left_open.append(complaints)
        with in_memory(b"") as stdin, transfer.PipeReader(reader, TRANSFER_SECONDS) as pipe:
            try:
                process = await self._enter(
                    packing, stdin=stdin.fileno(), stdout=writer, stderr=complaints_writer
                )
            finally:
                os.close(writer)
                os.close(complaints_writer)
            receiving = asyncio.create_task(asyncio.to_thread(receive, pipe))
            try:
                # Shielded, because the thread must have ended before its pipe is closed.
                received = await asyncio.shield(receiving)
                await _settle(process)
            except ArchiveCutShort as error:
                # Most often there was nothing to pack, and tar says what is missing.
                await _settle(process)
                if process.returncode in (0, 1):
                    raise
                raise TransferFailed(f"{folder}: {complaints.finish().strip()}") from error
            except BaseException:
                pipe.abandon()
                await asyncio.wait([receiving])
                raise
            finally:
                await asyncio.shield(end_command(process))
        self._must_live()
        if process.returncode not in (0, 1):
            raise TransferFailed(f"{folder}: {complaints.finish().strip() or process.returncode}")
        return received


async def _settle(process: asyncio.subprocess.Process) -> None:
    """Let a program end by itself that has nothing left to do."""
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), TERM_SECONDS)
