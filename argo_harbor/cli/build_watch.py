"""What `tasksets build-images --wait` shows meanwhile: a live table in a terminal, elsewhere a line for each
thing that changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from argo_harbor.cli import output
from argo_harbor.cli.show import brief

if TYPE_CHECKING:
    from rich.console import RenderableType

    from argo_harbor.engines.build_images import ImageLine

SHOWN_IMAGES = 30
"""Live rows at most; those on their way come first."""
ORDER = ("building", "pending", "failed", "missing", "ready")


class Watcher:
    """Plain lines."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    @staticmethod
    def of(terminal: bool) -> Watcher:
        return _Picture() if terminal else Watcher()

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def trouble(self, text: str) -> None:
        self._say("trouble", text)

    def show(self, lines: Sequence[ImageLine]) -> None:
        self._said.pop("trouble", None)
        for line in lines:
            after = f": {brief(line.detail)}" if line.detail else ""
            self._say(line.planned.image.key, f"{some(line.planned.tasks)} {line.word}{after}")

    def _say(self, key: str, text: str) -> None:
        if self._said.get(key) != text:
            self._said[key] = text
            output.note(text)


class _Picture(Watcher):
    """The same as a table that is drawn anew."""

    def __init__(self) -> None:
        super().__init__()
        from rich.live import Live

        self._live = Live(console=output.live_console(), auto_refresh=False, transient=True)

    def __enter__(self) -> _Picture:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def trouble(self, text: str) -> None:
        from rich.text import Text

        self._live.update(Text(output.printable(text)), refresh=True)

    def show(self, lines: Sequence[ImageLine]) -> None:
        self._live.update(drawn(lines), refresh=True)


def drawn(lines: Sequence[ImageLine]) -> RenderableType:
    """The table: those on their way first, and a line of numbers."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for line in sorted(lines, key=lambda line: ORDER.index(line.word))[:SHOWN_IMAGES]:
        name, detail = output.printable(some(line.planned.tasks)), output.printable(brief(line.detail))
        table.add_row(Text(name), Text(line.word), Text(detail))
    return Group(table, Text(counted(lines), style="dim"))


def counted(lines: Sequence[ImageLine]) -> str:
    """`3 ready, 1 failed`."""
    counts: Counter[str] = Counter(line.word for line in lines)
    return ", ".join(f"{counts[word]} {word}" for word in reversed(ORDER) if counts[word])


def some(names: Sequence[str]) -> str:
    """The first of some tasks, and how many there are besides."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
