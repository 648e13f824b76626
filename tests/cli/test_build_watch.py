"""What is seen of builds while they go on."""

from __future__ import annotations

import pytest
from rich.console import Console

from argo_harbor.cli.build_watch import SHOWN_IMAGES, counted, drawn, watcher
from argo_harbor.engines.build_images import ImageLine, Word
from argo_harbor.model.build_plan import PlannedImage
from argo_harbor.model.plan import ImagePlan
from tests.support.tasks import sha


def line(word: Word, *tasks: str, detail: str = "") -> ImageLine:
    image = ImagePlan(kind="build", reference="r/env:1", key=sha(tasks[0]))
    planned = PlannedImage(image=image, task=tasks[0], digest=sha("task"), side="agent", tasks=tasks)
    return ImageLine(planned, word, detail)


def shown(lines: list[ImageLine]) -> list[str]:
    console = Console(width=100)
    with console.capture() as captured:
        console.print(drawn(lines))
    return [" ".join(text.split()) for text in captured.get().splitlines()]


def test_the_table_has_those_on_their_way_first() -> None:
    lines = [
        line("ready", "a"),
        line("pending", "b", "c", detail="0/1 nodes:\nno cpu"),
        line("building", "evil \x1b[31m"),
    ]
    assert shown(lines) == [
        "evil \\x1b[31m building",
        "b and 1 more pending 0/1 nodes: no cpu",
        "a ready",
        "1 ready, 1 pending, 1 building",
    ]


def test_many_images_are_counted() -> None:
    lines = [line("ready", str(number)) for number in range(SHOWN_IMAGES + 5)]
    assert len(shown(lines)) == SHOWN_IMAGES + 1
    assert counted(lines) == "35 ready"


def test_without_a_terminal_each_change_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with watcher(terminal=False) as told:
        for _ in range(2):
            told.show([line("pending", "a", detail="starting")])
        told.trouble("no answer")
        told.show([line("ready", "a")])
    assert capsys.readouterr().err.splitlines() == ["a pending: starting", "no answer", "a ready"]


def test_in_a_terminal_nothing_of_the_table_stays(capsys: pytest.CaptureFixture[str]) -> None:
    with watcher(terminal=True) as told:
        told.show([line("pending", "a")])
        told.trouble("no answer")
    assert capsys.readouterr().out == ""
