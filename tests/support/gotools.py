"""Builds the Go programs that tests run against, from modules pinned under ``tests/tools``.

Nothing but ``go.mod`` and ``go.sum`` is committed: the sources come through the ordinary ``go`` command and
are held to those checksums, and the finished programs land in a cache. :mod:`tests.support.argo` is the first
user; another program is one more :class:`GoTool`, in a folder of its own when its dependencies do not agree
with those already there. Programs of our own (:mod:`tests.support.standins`) name their sources' folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
MODULES = REPOSITORY / "tests" / "tools"
CACHE_VARIABLE = "ARGO_HARBOR_TOOLS_CACHE"

# Short enough that a person at a terminal does not think that a compile of minutes hangs.
SECONDS_BETWEEN_SIGNS_OF_LIFE = 30.0
SCRATCH_PREFIX = "build-"
# The compiler's last lines hold the cause; the ones before are downloads.
FAILURE_LINES = 30

Say = Callable[[str], None]


class ToolUnavailable(Exception):
    """This machine has no Go, or one too old: the tests that need the program cannot run here."""


class ToolBuildFailed(Exception):
    """Go is there, but fetching or compiling failed; the message ends with Go's own last lines."""


@dataclass(frozen=True, kw_only=True)
class GoTool:
    """One program and where it comes from."""

    name: str
    """File name of the finished program."""
    folder: str
    """The folder under ``tests/tools`` whose ``go.mod`` pins it."""
    module: str
    """Path of the Go module with the sources; ``go.mod`` names its version."""
    package: str = ""
    """Package of the program, relative to the module; empty: the module's own folder."""
    ldflags: str = "-s -w"
    """Flags for the linker; ``{module}`` and ``{version}`` are filled in."""
    mend: Callable[[Path], None] | None = None
    """Adds to a writable copy of the sources what the published module lacks. None: compiled as published."""
    source: Path | None = None
    """Folder of the sources of a module of our own; ``folder`` is then only a name in the cache."""

    @property
    def home(self) -> Path:
        """The folder with the ``go.mod`` that pins everything the program is made of."""
        return self.source or MODULES / self.folder

    @property
    def version(self) -> str:
        """The pinned version, such as ``v4.0.5``; of sources of our own, their hash."""
        if self.source is not None:
            return _hash(self.source)
        return _pinned(self.home, rf"{re.escape(self.module)} (v\S+)")

    @property
    def target(self) -> str:
        """Import path of the program's package."""
        return f"{self.module}/{self.package}".rstrip("/")

    @property
    def oldest_go(self) -> tuple[int, ...]:
        """The oldest Go that compiles it, by the module's ``go`` line."""
        return _numbers(_pinned(self.home, r"go (\d\S*)"))


def cache_folder() -> Path:
    """Where finished programs are: ``ARGO_HARBOR_TOOLS_CACHE``, else ``.cache/tools`` in the repository."""
    return Path(os.environ.get(CACHE_VARIABLE) or REPOSITORY / ".cache" / "tools")


def tool_folder(tool: GoTool) -> Path:
    """The folder of the cache for this tool's folder and version; it may not exist yet."""
    return cache_folder() / f"{tool.folder}-{tool.version}"


def build(tool: GoTool, *, say: Say) -> Path:
    """Return the finished program, compiling it first if the cache does not hold it.

    Safe to call from several processes at once: one compiles, the others wait. ``say`` gets progress lines.

    Raises:
        ToolUnavailable: no Go, or one too old.
        ToolBuildFailed: the sources could not be fetched or do not compile.
    """
    program = tool_folder(tool) / tool.name
    if program.exists():
        return program
    require_go(tool)
    with locked(tool, say=say):
        if program.exists():
            return program
        say(f"{tool.name} {tool.version}: fetching the sources")
        _remove_leftovers(tool_folder(tool))
        with tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX, dir=tool_folder(tool)) as scratch:
            workspace = _workspace(tool, scratch=Path(scratch))
            unfinished = Path(scratch) / tool.name
            _compile(tool, workspace=workspace, output=unfinished, say=say)
            # A rename is all or nothing: an interrupted build never leaves half a program under this name.
            unfinished.replace(program)
    return program


def require_go(tool: GoTool) -> None:
    """Check that a Go recent enough for ``tool`` is on PATH.

    Raises:
        ToolUnavailable: with the reason and the version that is needed.
    """
    needed = ".".join(map(str, tool.oldest_go))
    if shutil.which("go") is None:
        raise ToolUnavailable(f"no `go` on PATH; building {tool.name} needs Go {needed} or newer")
    found = _go("env", "GOVERSION", folder=Path(tempfile.gettempdir())).strip()
    if _numbers(found.removeprefix("go")) < tool.oldest_go:
        raise ToolUnavailable(f"`go` is {found}; building {tool.name} needs Go {needed} or newer")


def module_source(tool: GoTool) -> Path:
    """Return the read-only folder of the module's sources in Go's own cache, fetching them when needed.

    Raises:
        ToolBuildFailed: they cannot be fetched, or differ from the checksum in ``go.sum``.
    """
    answer = json.loads(_go("mod", "download", "-json", tool.module, folder=MODULES / tool.folder))
    return Path(answer["Dir"])


@contextmanager
def locked(tool: GoTool, *, say: Say) -> Iterator[None]:
    """Hold the tool's folder in the cache (created when missing) against other processes."""
    folder = tool_folder(tool)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{tool.name} {tool.version}: waiting for another process that prepares it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _remove_leftovers(folder: Path) -> None:
    """Remove what killed builds left behind; the caller holds the lock, so no other build is under way."""
    for leftover in folder.glob(f"{SCRATCH_PREFIX}*"):
        shutil.rmtree(leftover)


def _workspace(tool: GoTool, *, scratch: Path) -> Path:
    """Return the folder to compile in: the pinned module itself, or a copy of it that uses mended sources."""
    pinned = tool.home
    if tool.source is not None:
        return pinned
    source = module_source(tool)
    if tool.mend is None:
        return pinned
    copy = scratch / "source"
    # Go's cache is read-only, so modes are not copied: the mended files have to be written among the others.
    shutil.copytree(source, copy, copy_function=shutil.copyfile)
    _make_writable(copy)
    tool.mend(copy)
    workspace = scratch / "workspace"
    workspace.mkdir()
    for name in ("go.mod", "go.sum"):
        shutil.copyfile(pinned / name, workspace / name)
    _go("mod", "edit", f"-replace={tool.module}={copy}", folder=workspace)
    return workspace


def _make_writable(folder: Path) -> None:
    for path, _, _ in os.walk(folder):
        Path(path).chmod(0o755)


def _compile(tool: GoTool, *, workspace: Path, output: Path, say: Say) -> None:
    ldflags = tool.ldflags.format(module=tool.module, version=tool.version)
    command = [
        "go",
        "build",
        "-trimpath",
        "-ldflags",
        ldflags,
        "-o",
        str(output),
        tool.target,
    ]
    say(f"{tool.name} {tool.version}: compiling, a few minutes the first time")
    started = time.monotonic()
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, cwd=workspace, env=_environment(), stdout=log, stderr=log)
        try:
            while not _ended(process):
                say(f"{tool.name} {tool.version}: still compiling, {time.monotonic() - started:.0f} s")
        except BaseException:
            process.kill()
            process.wait()
            raise
        if process.returncode:
            log.seek(0)
            raise ToolBuildFailed(_failure(command, log.read()))
    say(f"{tool.name} {tool.version}: compiled in {time.monotonic() - started:.0f} s")


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(timeout=SECONDS_BETWEEN_SIGNS_OF_LIFE)
    except subprocess.TimeoutExpired:
        return False
    return True


def _go(*arguments: str, folder: Path) -> str:
    command = ["go", *arguments]
    result = subprocess.run(
        command, cwd=folder, env=_environment(), capture_output=True, text=True, check=False
    )
    if result.returncode:
        raise ToolBuildFailed(_failure(command, result.stdout + result.stderr))
    return result.stdout


def _environment() -> dict[str, str]:
    """The caller's environment, minus what would make Go build something else than the pinned module says."""
    return {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOWORK": "off",
        "GOFLAGS": "-buildvcs=false",
        # Otherwise an old Go would quietly fetch and use a newer one, against what require_go says.
        "GOTOOLCHAIN": "local",
    }


def _failure(command: list[str], output: str) -> str:
    last_lines = "\n".join(output.splitlines()[-FAILURE_LINES:])
    return f"`{' '.join(command)}` failed:\n{last_lines}"


def _pinned(folder: Path, pattern: str) -> str:
    text = (folder / "go.mod").read_text()
    found = re.search(rf"^(?:require |\t)?{pattern}", text, re.MULTILINE)
    if found is None:
        raise LookupError(f"{folder}/go.mod has no line like `{pattern}`")
    return found[1]


def _hash(folder: Path) -> str:
    """Twelve hex digits that change whenever what Go compiles does."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".go", ".mod", ".sum"}:
            digest.update(f"{path.relative_to(folder)}\0{len(path.read_bytes())}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _numbers(version: str) -> tuple[int, ...]:
    """``1.25.7`` as (1, 25, 7); a development version, which names no number, counts as the newest."""
    numbers = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    return tuple(int(part or 0) for part in numbers.groups()) if numbers else (999,)
