"""The git program as sources call it: nothing of a repository is executed, nothing waits for ever.

The user's own configuration holds (credential helpers, proxies, `url.….insteadOf`), because it is what makes
private repositories readable; hooks, filters and whatever else a repository or a careless global setting
could bring in are off. Every process is ended with its children when its caller is.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from argo_harbor.errors import PlatformError
from argo_harbor.sources.git.errors import GitFailed

OLDEST = (2, 29)
"""Of `fetch --stdin` and `--no-write-fetch-head`."""
PATIENCE = 120.0
"""Seconds without a byte from a server after which it is given up: it may count objects for a while."""
LONGEST = 3600.0
"""Seconds that one exchange may take in all, however busy it looks."""
SAY_EVERY = 10.0
"""Seconds after which a wait is told."""
MAX_OUTPUT_BYTES = 64 << 20
"""Of a list of refs or of messages: a million refs."""
MAX_DOWNLOAD_BYTES = 16 << 30
"""Packed; as much as one task may hold unpacked."""
_POLL = 0.2

_INSTALL = "install git, or name a folder with --harbor-dir"
_VERSION = re.compile(rb"git version (\d+)\.(\d+)")
_NOT_INHERITED = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE",
    "GIT_PREFIX", "GIT_CONFIG", "GIT_IMPLICIT_WORK_TREE", "GIT_DEFAULT_HASH", "GIT_DEFAULT_REF_FORMAT",
)  # fmt: skip
"""What a hook or alias of another repository leaves in the environment of programs that it starts."""
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "credential.interactive=false",
    "fetch.recurseSubmodules=false",
    # Packs are counted while they grow, and loose objects are not.
    "fetch.unpackLimit=1",
    "fetch.writeCommitGraph=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.version=2",
    "submodule.recurse=false",
)
_ALLOWED = ("file", "git", "http", "https", "ssh")
UPLOAD_PACK = "GIT_ALLOW_PROTOCOL=none git -c uploadpack.allowFilter=true upload-pack"
"""How a repository of this machine is served: it may name servers of its own for objects that it lacks, with
programs that reach them, and none of those may start."""

type Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Git:
    """git with a folder of its own, for messages, lists and one bare repository."""

    program: str
    folder: Path
    server: str
    """Whom a network command waits for, as people are told."""
    say: Say
    patience: float = PATIENCE

    @property
    def repository(self) -> Path:
        return self.folder / "repository"

    def ask(self, *arguments: str) -> bytes:
        """What a command prints that talks to the server. Raises GitFailed, PlatformError."""
        return self._run(arguments, network=True)

    def read(self, *arguments: str) -> bytes:
        """What a command prints that needs only our own repository. Raises GitFailed, PlatformError."""
        return self._run((f"--git-dir={self.repository}", *arguments), network=False)

    def fetch(self, *arguments: str, settings: Sequence[str], wants: Sequence[str]) -> None:
        """Fetch `wants` into our repository. Raises GitFailed, PlatformError."""
        listed = "".join(f"{want}\n" for want in wants).encode()
        options = [part for setting in settings for part in ("-c", setting)]
        self._run((*options, f"--git-dir={self.repository}", "fetch", *arguments), network=True, given=listed)

    @contextlib.contextmanager
    def stream(self, *arguments: str, given: bytes = b"") -> Iterator[BinaryIO]:
        """The output of a command on our own repository, as it comes. Ended when the block is.

        Raises GitFailed when the command fails although all of its output was read.
        """
        command = self._command((f"--git-dir={self.repository}", *arguments))
        with self._file(given) as stdin, self._file() as stderr:
            process = self._start(command, stdin, subprocess.PIPE, stderr, network=False)
            # Ended before its output is closed: of what a closed pipe ends, the children would go on.
            with cast(BinaryIO, process.stdout) as output, _ended(process):
                yield output
                read_all = not output.read(1)
                if read_all and process.wait():
                    raise GitFailed(process.returncode, _text(stderr))

    def _run(self, arguments: Sequence[str], *, network: bool, given: bytes = b"") -> bytes:
        command = self._command(arguments)
        with self._file(given) as stdin, self._file() as stdout, self._file() as stderr:
            process = self._start(command, stdin, stdout, stderr, network=network)
            with _ended(process):
                self._wait(process, stdout, stderr)
            if process.returncode:
                raise GitFailed(process.returncode, _text(stderr))
            stdout.seek(0)
            return stdout.read()

    def _command(self, arguments: Sequence[str]) -> list[str]:
        settings = (*_SETTINGS, "http.lowSpeedLimit=1", f"http.lowSpeedTime={max(1, int(self.patience))}")
        return [self.program, *(part for setting in settings for part in ("-c", setting)), *arguments]

    def _start(
        self, command: list[str], stdin: BinaryIO, stdout: BinaryIO | int, stderr: BinaryIO, *, network: bool
    ) -> subprocess.Popen[bytes]:
        # A session of its own: ssh and git find no terminal to ask a question on, and its children end with
        # it. Its folder is no repository, so that none above it is taken for ours.
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=self.folder,
            env=environment(self.folder, network=network),
            start_new_session=True,
        )

    def _file(self, content: bytes = b"") -> BinaryIO:
        file = cast(BinaryIO, tempfile.TemporaryFile(dir=self.folder))  # noqa: SIM115  # closed by callers
        file.write(content)
        file.seek(0)
        return file

    def _wait(self, process: subprocess.Popen[bytes], stdout: BinaryIO, stderr: BinaryIO) -> None:
        started = changed = told = time.monotonic()
        before = -1
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_POLL)
                return
            printed = os.fstat(stdout.fileno()).st_size + os.fstat(stderr.fileno()).st_size
            received = _size(self.repository / "objects" / "pack")
            now = time.monotonic()
            if printed + received != before:
                before, changed = printed + received, now
            if printed > MAX_OUTPUT_BYTES or received > MAX_DOWNLOAD_BYTES:
                raise _unreachable(f"{self.server} sends more than a suite may hold")
            if now - changed > self.patience or now - started > LONGEST:
                raise _unreachable(f"{self.server} does not answer: gave up after {now - started:.0f}s")
            if now - told > SAY_EVERY:
                told = now
                self.say(f"Waiting for {self.server}: {received / 2**20:.0f} MiB in {now - started:.0f}s")


def find_git() -> str:
    """Path of the git program. Raises PlatformError `git_not_found`, also for one that is too old."""
    program = shutil.which("git")
    if program is None:
        raise PlatformError("git_not_found", "there is no git program on PATH", _INSTALL)
    try:
        printed = subprocess.run(
            [program, "--version"], capture_output=True, stdin=subprocess.DEVNULL, timeout=30, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise PlatformError("git_not_found", f"{program} does not run: {error}", _INSTALL) from error
    version = _VERSION.match(printed)
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        shown = printed.decode(errors="replace").strip()[:80] or "a program that names no version"
        needed = ".".join(map(str, OLDEST))
        raise PlatformError("git_not_found", f"{program} is {shown}", f"install git {needed} or newer")
    return program


def environment(folder: Path, *, network: bool) -> dict[str, str]:
    """The environment of a git process: the user's own, without what would aim it at another repository."""
    inherited = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    limited = inherited.get("GIT_ALLOW_PROTOCOL")
    allowed = [name for name in _ALLOWED if limited is None or name in limited.split(":")]
    return inherited | {
        "GIT_ALLOW_PROTOCOL": ":".join(allowed) if network and allowed else "none",
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        # Its messages are read, and they are translated.
        "LC_ALL": "C",
        "LANGUAGE": "",
    }


@contextlib.contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """No block is left with the process, or one of its children, still running."""
    try:
        yield
    finally:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _size(folder: Path) -> int:
    """Bytes of the files in a folder that another program writes to."""
    total = 0
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                total += entry.stat(follow_symlinks=False).st_size
    return total


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read(MAX_OUTPUT_BYTES).decode(errors="replace")


def _unreachable(message: str) -> PlatformError:
    return PlatformError(
        "source_unreachable", message, "try again, or clone it yourself and use --harbor-dir"
    )
