"""What `tasksets build-images --wait` shows meanwhile: a live table in a terminal, elsewhere a line for each
thing that changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from argo_harbor.cli import output
from argo_harbor.cli.looking import Lines, Picture
from argo_harbor.cli.show import brief

if TYPE_CHECKING:
    from rich.console import RenderableType

    from argo_harbor.engines.build_images import ImageLine

SHOWN_IMAGES = 30
"""Live rows at most; those on their way come first."""
ORDER = ("building", "pending", "failed", "missing", "ready")


def watcher(terminal: bool) -> BuildLines | BuildPicture:
    return BuildPicture() if terminal else BuildLines()


class BuildLines(Lines):
    """Of builds."""

    def trouble(self, text: str) -> None:
        self.say("trouble", text)

    def show(self, lines: Sequence[ImageLine]) -> None:
        self.forget("trouble")
        for line in lines:
            after = f": {brief(line.detail)}" if line.detail else ""
            self.say(line.planned.image.key, f"{output.some(line.planned.tasks)} {line.word}{after}")


class BuildPicture(Picture):
    """The same as a table."""

    def trouble(self, text: str) -> None:
        self.write(text)

    def show(self, lines: Sequence[ImageLine]) -> None:
        self.draw(drawn(lines))


def drawn(lines: Sequence[ImageLine]) -> RenderableType:
    """The table: those on their way first, and a line of numbers."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for line in sorted(lines, key=lambda line: ORDER.index(line.word))[:SHOWN_IMAGES]:
        name, detail = output.printable(output.some(line.planned.tasks)), output.printable(brief(line.detail))
        table.add_row(Text(name), Text(line.word), Text(detail))
    return Group(table, Text(counted(lines), style="dim"))


def counted(lines: Sequence[ImageLine]) -> str:
    """`3 ready, 1 failed`."""
    counts: Counter[str] = Counter(line.word for line in lines)
    return ", ".join(f"{counts[word]} {word}" for word in reversed(ORDER) if counts[word])
