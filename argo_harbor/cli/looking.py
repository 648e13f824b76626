"""Looking at something again and again until it has ended: for runs and for builds of images in a cluster.

What is looked at goes on whether anybody looks or not, so a store or cluster that does not answer is told and
waited out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from argo_harbor.cli import output
from argo_harbor.errors import PlatformError

if TYPE_CHECKING:
    from rich.console import RenderableType

LOOK_SECONDS = 2.0
_MAX_PAUSE = 30.0


def look_until[T](
    look: Callable[[], T],
    *,
    ended: Callable[[T], bool],
    show: Callable[[T], None],
    trouble: Callable[[PlatformError], None],
    hopeless: Callable[[PlatformError], bool],
) -> T:
    """What was seen at the end. Raises the errors that are `hopeless`."""
    pause = LOOK_SECONDS
    while True:
        began = time.monotonic()
        try:
            seen = look()
        except PlatformError as error:
            if hopeless(error):
                raise
            trouble(error)
            pause = min(pause * 2, _MAX_PAUSE)
        else:
            show(seen)
            if ended(seen):
                return seen
            # What is large takes long to look at: never more than a third of the time.
            pause = max(LOOK_SECONDS, 2 * (time.monotonic() - began))
        time.sleep(pause)


class Lines:
    """Plain lines, one for each thing that changed."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def say(self, key: str, text: str) -> None:
        """Print the text unless it was the last that was said of `key`."""
        if self._said.get(key) != text:
            self._said[key] = text
            output.note(text)

    def forget(self, key: str) -> None:
        """Say it again when it comes again."""
        self._said.pop(key, None)


class Picture:
    """A picture in a terminal that is drawn anew, and gone at the end."""

    def __init__(self) -> None:
        from rich.live import Live

        self._live = Live(console=output.live_console(), auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def draw(self, picture: RenderableType) -> None:
        self._live.update(picture, refresh=True)

    def write(self, text: str) -> None:
        """Words in the picture's place."""
        from rich.text import Text

        self.draw(Text(output.printable(text)))
