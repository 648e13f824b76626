"""What the commands print: tables and lines for people, one JSON document for programs.

stdout carries results, stderr progress and errors. With `--json` stdout is exactly one document.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from argo_harbor.errors import HarborError

if TYPE_CHECKING:
    from rich.console import Console

    from argo_harbor.model.base import Model
    from argo_harbor.model.taskset import Warned

MAX_SHOWN = 20
"""Findings or warnings printed before the rest is counted; `--json` always has all."""


def prepare_streams() -> None:
    """Let no character end a command: where the output is not in UTF-8, others are written as escapes.

    A closed stream (`>&-`), which Python has as None, becomes one that takes everything.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # for good
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def silence() -> None:
    """Send what is still buffered nowhere: Python flushes at exit, and must not fail then."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
        with contextlib.suppress(OSError, ValueError):
            os.dup2(nowhere, stream.fileno())


def line(text: str = "") -> None:
    """One plain line of result. Progress of a later phase must not overtake it, hence the flush."""
    print(printable(text), flush=True)


def note(text: str) -> None:
    """One plain line for people, on stderr."""
    print(printable(text), file=sys.stderr, flush=True)


def printable(text: str) -> str:
    """Task names and messages come from outside: control characters must not reach a terminal."""
    return "".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text)


def document(data: Model | dict[str, Any]) -> None:
    """The one JSON document of a command."""
    plain = data if isinstance(data, dict) else data.as_data()
    # JSON has escapes of its own; half a character, which UTF-8 cannot hold either, is one of them.
    text = json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False)
    if not _can_be_shown(text):
        text = json.dumps(plain, indent=2, allow_nan=False)
    print(text, flush=True)


def _can_be_shown(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def error(problem: HarborError, *, as_json: bool) -> None:
    """`error[code]: message`, every finding, and the hint; or the error document."""
    if as_json:
        document(problem.as_json())
        return
    note(f"error[{problem.code}]: {problem.message}")
    if len(problem.items) > 1:
        for item in problem.items[:MAX_SHOWN]:
            note(f"  {item}")
            if item.hint and item.hint != problem.hint:
                note(f"    hint: {item.hint}")
        if len(problem.items) > MAX_SHOWN:
            note(f"  and {len(problem.items) - MAX_SHOWN} more; --json lists all")
    if problem.hint:
        note(f"hint: {problem.hint}")


def warnings(found: Iterable[Warned]) -> None:
    every = list(found)
    for warned in every[:MAX_SHOWN]:
        note(f"warning[{warned.code}]: {warned}" + (f" ({warned.hint})" if warned.hint else ""))
    if len(every) > MAX_SHOWN:
        note(f"and {len(every) - MAX_SHOWN} more warnings; --json lists all")


def some(names: Sequence[str]) -> str:
    """The first of some tasks, and how many there are besides."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def live_console() -> Console:
    """A rich console on stderr for what moves; it breaks no line, so that commands in it can be copied."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[str] = ()) -> None:
    """Aligned columns on stdout; columns named in `right` are aligned to the right.

    Plain, and not rich's: that needs seconds for a thousand rows, more than all of compiling them.
    """
    numeric = set(right)
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    rule = "─" if _can_be_shown("─") else "-"
    for row in (columns, [rule * width for width in widths], *cells):
        parts = [
            text.rjust(width) if name in numeric else text.ljust(width)
            for name, text, width in zip(columns, row, widths, strict=True)
        ]
        sys.stdout.write("  ".join(parts).rstrip() + "\n")
    sys.stdout.flush()


def duration(seconds: float) -> str:
    """`3m 12s`; below ten seconds with one decimal."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, secs = divmod(rest, 60)
    if hours:
        return f"{hours}h {minutes:02}m"
    return f"{minutes}m {secs:02}s" if minutes else f"{secs}s"


def when(timestamp: str) -> str:
    """An RFC 3339 time in UTC as `2026-01-02 03:04`; a dash for none."""
    return timestamp[:16].replace("T", " ") or "-"


def size(megabytes: float) -> str:
    """Mebibytes as `12 KiB`, `512 MiB` or `4.0 GiB`."""
    if 0 < megabytes < 1:
        return f"{max(megabytes * 1024, 1):.0f} KiB"
    return f"{megabytes / 1024:.1f} GiB" if megabytes >= 1024 else f"{megabytes:.0f} MiB"


def amount(value: float) -> str:
    """A number without needless decimals."""
    return f"{value:g}"
