"""`argo-harbor doctor`: whether the cluster can run suites, and the cure where it cannot."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from argo_harbor.cli import options, output
from argo_harbor.errors import EXIT_FAILED, EXIT_OK

if TYPE_CHECKING:
    from types import FrameType

    from argo_harbor.cluster.client import Cluster
    from argo_harbor.doctor.run import Examination, Line
    from argo_harbor.model.platform import Platform

_COLOURS = {"ok": "green", "warning": "yellow", "failed": "red", "skipped": "dim"}


def doctor(
    quick: Annotated[
        bool, typer.Option("--quick", help="Start no probe pods: ask the API server and the store only.")
    ] = False,
    seconds: Annotated[
        int,
        typer.Option("--seconds", metavar="N", min=5, max=3600, help="Until every check must be over."),
    ] = 50,
    platform: Annotated[
        Path | None,
        typer.Option(
            "--platform",
            metavar="FILE",
            help="Platform file; else $ARGO_HARBOR_PLATFORM, else the installed one.",
            rich_help_panel="Where",
        ),
    ] = None,
    context: options.Context = None,
    namespace: options.Namespace = None,
    as_json: options.Json = False,
) -> int:
    """Check cluster, CNI, store, registry, images and permissions, and say the cure of what is wrong."""
    from argo_harbor.cluster.connect import connect
    from argo_harbor.doctor.installed import platform_of
    from argo_harbor.doctor.run import Examination

    settings = _from_file(platform)
    cluster = connect(context, namespace or (settings.namespace if settings else None))
    examination = Examination(cluster, settings or platform_of(cluster), quick=quick, seconds=seconds)
    output.note(f"Context {cluster.context}, namespace {cluster.namespace}")
    with _interrupted_by_termination():
        found = _look(examination)
    found.sort(key=lambda line: examination.order.index(line.result.name))
    for path in examination.leftovers:
        output.note(f"could not be removed: {path}")
    status = EXIT_FAILED if any(line.result.status == "failed" for line in found) else EXIT_OK
    if as_json:
        _document(cluster, found, ok=status == EXIT_OK)
    else:
        _table(found)
    return status


def _from_file(path: Path | None) -> Platform | None:
    from argo_harbor.settings.platform import platform_file, read_platform

    chosen = platform_file(path)
    return read_platform(chosen.path) if chosen else None


def _look(examination: Examination) -> list[Line]:
    from rich.text import Text

    found: list[Line] = []
    console = output.live_console()
    with console.status("looking") if console.is_terminal else contextlib.nullcontext() as shown:

        def tick() -> None:
            waiting = examination.waiting
            if shown and waiting:
                some = ", ".join(waiting[:4]) + (" …" if len(waiting) > 4 else "")
                shown.update(Text(f"{len(found)} of {len(examination.order)}; waiting for {some}"))

        with contextlib.closing(examination.lines(tick)) as lines:
            for line in lines:
                found.append(line)
                if not shown:
                    took = output.duration(line.seconds)
                    output.note(f"{line.result.name}: {line.result.status} ({took})")
    return found


def _table(found: list[Line]) -> None:
    """Each line, and below it the cure."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    width = max((len(line.result.name) for line in found), default=0)
    told = ""
    for line in found:
        result = line.result
        shown = "FAILED" if result.status == "failed" else result.status
        text = Text(f"{result.name:<{width}}  ")
        text.append(f"{shown:<7}", style=_COLOURS[result.status])
        text.append(f"  {_one_line(result.message)}")
        console.print(text)
        if result.hint and result.hint != told:
            console.print(Text(f"{'':<{width}}  {'':<7}  cure: {_one_line(result.hint)}"))
        told = result.hint
    counts = {status: sum(line.result.status == status for line in found) for status in _COLOURS}
    summary = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    console.print(Text(summary, style="red" if counts["failed"] else "green"))


def _document(cluster: Cluster, found: list[Line], *, ok: bool) -> None:
    from argo_harbor.model.documents import DoctorCheck, DoctorDocument

    output.document(
        DoctorDocument(
            ok=ok,
            context=cluster.context,
            namespace=cluster.namespace,
            checks=tuple(
                DoctorCheck(**line.result._asdict(), seconds=round(line.seconds, 1)) for line in found
            ),
        )
    )


def _one_line(text: str) -> str:
    return output.printable(" ".join(text.split()))


@contextlib.contextmanager
def _interrupted_by_termination() -> Iterator[None]:
    """SIGTERM ends the visit as Ctrl-C does: with nothing left behind."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
