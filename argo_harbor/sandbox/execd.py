"""The sandbox of a trial pod: the container with execd in it, which the kubelet starts and stops.

Commands run as children of execd and are followed on a stream of events. Every clock is ours: a command that
is out of time is interrupted by its id, and whether it has ended is asked for. A container that was killed
comes back empty, so everything of our own checks that it still runs under the same first process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from pathlib import Path

from argo_harbor.sandbox.base import (
    OUTPUT_LIMIT,
    Downloaded,
    ExecResult,
    Sandbox,
    SandboxDied,
    SandboxError,
    SandboxRestarted,
    SandboxStartFailed,
)
from argo_harbor.sandbox.execd_client import ExecdClient, ExecdRefused
from argo_harbor.sandbox.execd_files import Files
from argo_harbor.sandbox.execd_script import KILL_ALL, WELCOME, Where, read_where, script
from argo_harbor.sandbox.execd_users import MAX_PASSWD, find_user
from argo_harbor.sandbox.http import NoAnswer
from argo_harbor.sandbox.output import Tail

SCRATCH = "/opt/opensandbox/scratch"
"""Folder inside where archives lie on their way; anybody may write there."""
END_SECONDS = 8.0
"""For execd to end a command: three seconds after SIGTERM it sends SIGKILL."""
POLL_SECONDS = 0.05
OWN_SECONDS = 600.0
"""For a script of ours."""
FIRST_PROCESS = "execd"
_ROOT = (None, "root", "0", 0)
_KILLED = 137
_NOT_STARTED = 126
"""Status of a command that execd could not start."""


class UnknownUser(SandboxError):
    """The sandbox has no user of that name."""

    retryable = False


class ExecdSandbox(Sandbox):
    """See `Sandbox` for what the methods promise."""

    def __init__(self, client: ExecdClient, *, scratch: str = SCRATCH) -> None:
        self._client = client
        self._files = Files(client, self.script, scratch=scratch)
        self._where: Where | None = None
        self._keeps_line_ends = True

    @property
    def oom_kills(self) -> int:
        """Processes of the sandbox that the kernel had ended for lack of memory when last seen."""
        return self._where.oom_kills if self._where else 0

    async def start(self) -> None:
        """Wait for execd, however long the caller lets it."""
        while True:
            try:
                await self._client.ping()
                break
            except NoAnswer:
                await asyncio.sleep(POLL_SECONDS)
            except ExecdRefused as error:
                raise SandboxStartFailed(f"execd refuses: {error}") from error
        try:
            welcome = await self.script(WELCOME)
        except SandboxDied as error:
            raise SandboxStartFailed(str(error)) from error
        self._files.tar = welcome.stdout.strip()

    async def stop(self) -> None:
        """What runs inside ends here; the container ends with its pod."""
        if self._where is not None:
            with suppress(SandboxError):
                await self.kill_leftovers()

    async def exec(
        self,
        command: str,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | int | None = None,
        timeout_sec: float | None = None,
    ) -> ExecResult:
        # execd's own folder for temporary files and its token are no business of a command.
        variables = {"TMPDIR": "/tmp", "EXECD_ACCESS_TOKEN": ""}
        request: dict[str, object] = {"command": command}
        if user not in _ROOT:
            found = find_user(user or 0, await self._passwd())
            if found is None:
                raise UnknownUser(f"there is no user {user!r} in the sandbox")
            request |= {"uid": found.uid, "gid": found.gid}
            variables |= {"HOME": found.home} | ({"USER": found.name} if found.name else {})
        if cwd is not None:
            request["cwd"] = cwd
        request["envs"] = variables | dict(env or {})
        return await self._run(request, timeout_sec)

    async def upload(self, source: Path, target: str) -> None:
        await self._alive(lambda: self._files.upload(source, target))

    async def download_folder(self, source: str, target: Path) -> Downloaded:
        return await self._alive(lambda: self._files.download_folder(source, target))

    async def download_file(self, source: str, target: Path) -> Downloaded:
        return await self._alive(lambda: self._files.download_file(source, target))

    async def kill_leftovers(self) -> None:
        await self.script("")
        if self._where is None or self._where.name != FIRST_PROCESS:
            # Where execd is not the first process it would end itself.
            raise SandboxError("leftovers cannot be killed: execd is not the first process of the sandbox")
        done = await self.script(KILL_ALL)
        if done.return_code != 0:
            raise SandboxDied(f"leftovers could not be killed: {done.stderr.strip()}")

    async def same(self) -> None:
        """Raises: SandboxRestarted when the container is another one than at the start; SandboxDied."""
        await self.script("")

    async def script(self, text: str, seconds: float = OWN_SECONDS) -> ExecResult:
        """Run a script of ours as root; its output is without the line that says where it ran.

        Raises: SandboxRestarted, SandboxDied.
        """
        done, where, rest = await self._run_script(text, seconds)
        if where is None and self._where is None:
            # Older releases of execd drop line ends, so the whole output is one line.
            self._keeps_line_ends = False
            done, where, rest = await self._run_script(text, seconds)
        if where is None:
            said = (done.stdout or done.stderr)[:200]
            raise SandboxDied(f"the sandbox does not say where it is: {said!r}")
        if self._where is not None and where.first != self._where.first:
            raise SandboxRestarted(
                "the sandbox ended and came back empty; most often it had run out of memory"
            )
        self._where = where
        return ExecResult(rest, done.stderr, done.return_code)

    async def _run_script(self, text: str, seconds: float) -> tuple[ExecResult, Where | None, str]:
        done = await self._run({"command": script(text), "cwd": "/"}, seconds)
        if done.timed_out:
            raise SandboxDied(f"the sandbox did not answer within {seconds:g} s")
        first, _, rest = done.stdout.partition("\n")
        return done, read_where(first), rest

    async def _passwd(self) -> bytes:
        try:
            return await self._client.read("/etc/passwd", MAX_PASSWD)
        except ExecdRefused as error:
            if error.status == 404:
                return b""
            raise SandboxDied(f"execd refuses: {error}") from error
        except NoAnswer as error:
            raise _dead(error) from error

    async def _alive[T](self, work: Callable[[], Awaitable[T]]) -> T:
        """Move files, and make sure that they went to or came from the sandbox that was started."""
        try:
            return await work()
        except NoAnswer as error:
            raise _dead(error) from error

    async def _run(self, request: Mapping[str, object], seconds: float | None) -> ExecResult:
        running = _Running(self._client, keeps_line_ends=self._keeps_line_ends)
        following = asyncio.create_task(running.follow(request))
        timed_out = False
        try:
            await asyncio.wait([following], timeout=seconds)
            if not following.done():
                timed_out = True
                if not await running.end(following):
                    raise SandboxDied("a command that is out of time cannot be ended")
        except asyncio.CancelledError:
            await asyncio.shield(running.end(following))
            raise
        finally:
            following.cancel()
        error = following.exception()
        if isinstance(error, NoAnswer):
            raise _dead(error) from error
        if isinstance(error, ExecdRefused) and error.status != 400:
            raise SandboxDied(f"execd refuses: {error}") from error
        if isinstance(error, ExecdRefused):
            return ExecResult("", error.message, _NOT_STARTED)
        if error is not None:
            raise error
        return running.result(following.result(), timed_out=timed_out)


def _dead(error: NoAnswer) -> SandboxDied:
    return SandboxDied(
        f"the sandbox ended, as it does when it runs out of memory: execd does not answer: {error}"
    )


class _Running:
    """One command that execd runs for us."""

    def __init__(self, client: ExecdClient, *, keeps_line_ends: bool) -> None:
        self._client = client
        self._line_end = "" if keeps_line_ends else "\n"
        self._id: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._tails = {"stdout": Tail(OUTPUT_LIMIT), "stderr": Tail(OUTPUT_LIMIT)}

    async def follow(self, request: Mapping[str, object]) -> str:
        """Read events to the last one. Returns what it says: a status or a message.

        Raises: NoAnswer, ExecdRefused.
        """
        async with aclosing(self._client.run(request)) as events:
            async for event in events:
                match event.kind:
                    case "init" if not self._id.done():
                        self._id.set_result(event.text)
                    case "stdout" | "stderr":
                        text = event.text + self._line_end
                        self._tails[event.kind].data_received(text.encode(errors="replace"))
                    case "execution_complete":
                        return "0"
                    case "error":
                        return event.text
        raise NoAnswer("the command's events ended before it did")

    async def end(self, following: asyncio.Task[str]) -> bool:
        """Interrupt the command, and follow it to its end. Returns whether it has ended."""
        with suppress(TimeoutError, NoAnswer, ExecdRefused):
            async with asyncio.timeout(END_SECONDS):
                command = await asyncio.shield(self._id)
                # A command that has just ended cannot be interrupted; the question below tells.
                with suppress(ExecdRefused):
                    await self._client.interrupt(command)
                await asyncio.wait([following])
                return not await self._client.is_running(command)
        return False

    def result(self, said: str, *, timed_out: bool) -> ExecResult:
        stdout, stderr = (self._tails[name].finish() for name in ("stdout", "stderr"))
        try:
            status = int(said)
        except ValueError:
            return ExecResult(stdout, stderr + said, _NOT_STARTED, timed_out)
        # What a signal ended, execd reports as -1.
        return ExecResult(stdout, stderr, status if status >= 0 else _KILLED, timed_out)
