"""What every sandbox can do, whatever carries it out.

The runner drives trials through the `Sandbox` protocol alone; `bubblewrap.py` implements it for one machine.
The errors here are narrow ones: the runner turns them into a trial's outcome, no user meets them directly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, Protocol

type Network = Literal["none", "unfenced"]
"""`none`: loopback only. `unfenced`: the host's network, without any rule."""

OUTPUT_LIMIT = 1 << 20
"""Bytes kept of each output stream of one command: enough for a failing test's tail, small beside the
trial."""


class SandboxError(Exception):
    """A sandbox did not do what was asked; `retryable` says whether a fresh one may."""

    retryable: ClassVar[bool] = True


class SandboxStartFailed(SandboxError):
    """The sandbox never came up."""


class SandboxDied(SandboxError):
    """The sandbox ended while it was still needed."""


class SandboxRestarted(SandboxDied):
    """The sandbox ended and came back empty: what it held is gone."""


class TransferFailed(SandboxError):
    """Files did not get through, for a reason that a fresh sandbox may not have."""


class TransferRefused(SandboxError):
    """What the sandbox sent is too much, or no archive that can be trusted."""

    retryable = False


class ImageBuildFailed(SandboxError):
    """A build step failed: the trial's error `image_build_failed`.

    `step` is the instruction with its line, `log` the last output of it.
    """

    retryable = False

    def __init__(self, step: str, log: str) -> None:
        super().__init__(f"{step}: {log.strip().splitlines()[-1] if log.strip() else 'failed'}")
        self.step = step
        self.log = log


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How one command ended."""

    stdout: str
    """UTF-8 with replacement characters; the last `OUTPUT_LIMIT` bytes, after a line that says what was
    dropped."""
    stderr: str
    return_code: int
    """128 + signal when a signal ended it."""
    timed_out: bool = False
    """True when our own clock ended it; `return_code` then says how it died."""


class Link(NamedTuple):
    """A link that a sandbox offered for download and that was not created."""

    path: str
    """POSIX path relative to the downloaded folder."""
    target: str


@dataclass(frozen=True, slots=True)
class Downloaded:
    """What a download wrote, and what it left out."""

    files: int
    bytes: int
    links: tuple[Link, ...] = ()
    """Symbolic and hard links, in the order in which they came."""
    skipped: tuple[str, ...] = ()
    """Paths of devices, pipes and sockets."""


class Sandbox(Protocol):
    """One isolated machine from `start` to `stop`. Paths inside are absolute POSIX paths."""

    async def start(self) -> None:
        """Raises SandboxStartFailed."""

    async def stop(self) -> None:
        """End every process inside and remove what it left on the host. Safe to call twice, or without a
        start."""

    async def exec(
        self,
        command: str,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | int | None = None,
        timeout_sec: float | None = None,
    ) -> ExecResult:
        """Run `command` with `bash -c` (`sh` where there is no bash), stdin closed, until it ends.

        What it leaves running stays. Default folder: the image's. After `timeout_sec` its process group gets
        SIGTERM and soon SIGKILL. Cancelling the call ends the command.

        Raises: SandboxDied; Refused `local_user_unsupported` for a user that the sandbox cannot be.
        """

    async def upload(self, source: Path, target: str) -> None:
        """Copy a file to the path `target`, or a folder's content into the folder `target`; modes are kept.

        Raises: TransferFailed, SandboxDied.
        """

    async def download_folder(self, source: str, target: Path) -> Downloaded:
        """Copy a folder's content into the folder `target`, which is made when missing.

        Raises: TransferFailed (no such folder), TransferRefused, SandboxDied.
        """

    async def download_file(self, source: str, target: Path) -> Downloaded:
        """Copy one regular file to the path `target`; a link or special file only shows up in the answer.

        Raises: TransferFailed (no such file), TransferRefused, SandboxDied.
        """

    async def kill_leftovers(self) -> None:
        """End every process inside but the sandbox itself."""
