"""What COPY and ADD take from a build context: patterns, `.dockerignore`, and no way out of the folder.

Task folders are hostile: a link in one may name a key of whoever runs it. A source that leads out is
refused, by name when submitting (`check_context`) and again when it is packed.
"""

from __future__ import annotations

import bz2
import io
import lzma
import posixpath
import tarfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple

import pathspec

from argo_harbor.errors import Finding
from argo_harbor.sandbox.archive import BLOCK, is_header
from argo_harbor.sandbox.dockerfile import BuildPlan, Copy
from argo_harbor.sandbox.transfer import add_to_archive

_WILD = "*?["
_HEAD = 1 << 20
"""Bytes read to find out whether a file is an archive: the first block of bzip2 needs up to 900 KB."""
_XZ_MEMORY = 128 << 20
"""`xz -9` asks for 65 MiB; a file may claim 4 GiB."""


class ContextError(Exception):
    """A source that is missing or must not be copied."""


class Source(NamedTuple):
    name: str
    """POSIX path relative to the context, as the pattern found it."""
    path: Path
    """Where it really lies, inside the context."""


class Context:
    """The folder that a Dockerfile copies from."""

    def __init__(self, folder: Path) -> None:
        """Raises: ContextError for a `.dockerignore` that cannot be read."""
        self._folder = folder
        self._real = folder.resolve()
        self._ignored = _ignore_rules(folder)
        self._has_exceptions = any(pattern.include is False for pattern in self._ignored.patterns)

    def sources(self, pattern: str) -> list[Source]:
        """What one source of COPY names, sorted. Raises: ContextError when that is nothing, or lies
        outside."""
        relative = posixpath.normpath(pattern.lstrip("/") or ".")
        if relative == ".." or relative.startswith("../"):
            raise ContextError(f"{pattern} leads out of the build context")
        if any(sign in relative for sign in _WILD):
            names = sorted(path.relative_to(self._folder).as_posix() for path in self._folder.glob(relative))
        else:
            names = [relative]
        kept = [name for name in names if name == "." or self.keeps(name, is_folder=False)]
        found = [Source(name, self._inside(name)) for name in kept]
        if not found:
            raise ContextError(f"{pattern} names nothing in the build context")
        return found

    def keeps(self, name: str, is_folder: bool) -> bool:
        """False for what `.dockerignore` leaves out; a folder may hold exceptions, so then it stays."""
        if is_folder and self._has_exceptions:
            return True
        return not self._ignored.match_file(name)

    def _inside(self, name: str) -> Path:
        try:
            path = (self._folder / name).resolve(strict=True)
        except (OSError, RuntimeError):
            raise ContextError(f"{name} names nothing in the build context") from None
        if not path.is_relative_to(self._real):
            raise ContextError(f"{name} is a link that leads out of the build context")
        if not (path.is_file() or path.is_dir()):
            raise ContextError(f"{name} is neither a file nor a folder")
        return path

    def pack(self, step: Copy, archive: BinaryIO, *, target_is_folder: bool) -> str:
        """Write what a COPY copies as a tar archive; returns the folder inside where it is to be unpacked.

        Raises: ContextError, OSError.
        """
        sources = [source for pattern in step.sources for source in self.sources(pattern)]
        into_folder = step.target.endswith("/") or target_is_folder or len(sources) + len(step.inline) > 1
        into_folder = into_folder or any(source.path.is_dir() for source in sources)
        into_folder = into_folder or bool(self.archives(step))
        folder, renamed = (step.target, "") if into_folder else posixpath.split(step.target)
        with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as out:
            for source in sources:
                if source.path.is_dir():
                    self._add_content(out, source, step.mode)
                else:
                    name = renamed or posixpath.basename(source.name)
                    add_to_archive(out, source.path, name, mode=step.mode)
            for name, text in step.inline:
                _add_text(out, renamed or name, text, step.mode)
        return folder

    def archives(self, step: Copy) -> list[str]:
        """Names of the copied files that are to be unpacked in their folder afterwards. Raises:
        ContextError."""
        sources = [source for pattern in step.sources for source in self.sources(pattern) if step.unpacks]
        files = [source for source in sources if source.path.is_file()]
        return [posixpath.basename(source.name) for source in files if is_archive(source.path)]

    def _add_content(self, out: tarfile.TarFile, source: Source, mode: int) -> None:
        def keep(inner: str, is_folder: bool) -> bool:
            return self.keeps(posixpath.normpath(f"{source.name}/{inner}"), is_folder)

        for child in sorted(source.path.iterdir()):
            if keep(child.name, child.is_dir() and not child.is_symlink()):
                add_to_archive(out, child, child.name, keep=keep, mode=mode)


def is_archive(path: Path) -> bool:
    """Whether a file is a tar archive that ADD unpacks: plain, or compressed with gzip, bzip2 or xz."""
    with path.open("rb") as content:
        head = content.read(_HEAD)
    try:
        if head.startswith(b"\x1f\x8b"):
            head = zlib.decompressobj(wbits=31).decompress(head, BLOCK)
        elif head.startswith(b"BZh"):
            head = bz2.BZ2Decompressor().decompress(head, BLOCK)
        elif head.startswith(b"\xfd7zXZ\0"):
            head = lzma.LZMADecompressor(memlimit=_XZ_MEMORY).decompress(head, BLOCK)
    except (zlib.error, lzma.LZMAError, OSError):
        return False
    return is_header(head[:BLOCK])


def check_context(plan: BuildPlan, folder: Path, *, file: str) -> list[Finding]:
    """Sources that are missing or lead out of the context, as findings about `file` (the Dockerfile)."""
    findings = []
    try:
        context = Context(folder)
    except ContextError as error:
        return [_finding(str(error), file)]
    for step in plan.steps:
        for pattern in step.sources if isinstance(step, Copy) else ():
            try:
                context.sources(pattern)
            except ContextError as error:
                findings.append(_finding(f"{step.text}: {error}", file))
    return findings


def _finding(message: str, file: str) -> Finding:
    return Finding(
        code="invalid_task_config", message=message, hint="copy files of the task's own folder", file=file
    )


def _add_text(out: tarfile.TarFile, name: str, text: str, mode: int) -> None:
    content = text.encode("utf-8", errors="surrogateescape")
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode if mode >= 0 else 0o644
    out.addfile(info, io.BytesIO(content))


def _ignore_rules(folder: Path) -> pathspec.GitIgnoreSpec:
    """`.dockerignore` in terms of gitignore: its patterns start at the context, not anywhere below."""
    try:
        lines = (folder / ".dockerignore").read_text().splitlines()
    except FileNotFoundError:
        lines = []
    except (OSError, ValueError) as error:
        raise ContextError(f".dockerignore cannot be read: {error}") from error
    return pathspec.GitIgnoreSpec.from_lines(_anchored(lines))


def _anchored(lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        negated, pattern = ("!", pattern[1:].strip()) if pattern.startswith("!") else ("", pattern)
        path = posixpath.normpath(pattern.lstrip("/"))
        if path != ".":
            yield f"{negated}/{path}"
