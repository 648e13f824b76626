"""BuildKit's events as lines to read: times, steps, foreign output made harmless."""

from __future__ import annotations

import base64
from typing import Any

from argo_harbor.runner.build_progress import TAIL_LINES, Progress
from tests.runner.test_build_failure import RECORDINGS


def vertex(digest: str, name: str, **more: Any) -> dict[str, Any]:
    return {"vertexes": [{"digest": digest, "name": name, **more}]}


def log(digest: str, data: bytes, at: str = "2026-01-01T00:00:02.5Z") -> dict[str, Any]:
    encoded = base64.b64encode(data).decode()
    return {"logs": [{"vertex": digest, "stream": 1, "data": encoded, "timestamp": at}]}


STARTED = "2026-01-01T00:00:01.123456789Z"
ENDED = "2026-01-01T00:00:03.623456789Z"


def lines(*events: dict[str, Any], progress: Progress | None = None) -> list[str]:
    progress = progress or Progress()
    return [line for event in events for line in progress.feed(event)]


def test_a_recorded_build_reads_like_a_log() -> None:
    shown = [line.partition(" ")[2] for line in lines(*RECORDINGS["built"]["events"])]
    assert shown[0] == "#1 [internal] load build definition from Dockerfile"
    assert "#4 built" in shown or "#5 built" in shown
    assert any(line.endswith("exporting to image") for line in shown)


def test_the_digests_of_base_images_are_kept() -> None:
    progress = Progress()
    lines(*RECORDINGS["built"]["events"], progress=progress)
    [(name, digest)] = progress.bases.items()
    assert name == "docker.io/library/debian:bookworm-slim"
    assert digest.startswith("sha256:")


def test_each_line_has_its_time_and_its_step() -> None:
    assert lines(
        vertex("a", "[1/2] RUN true", started=STARTED),
        log("a", b"one\ntw"),
        log("a", b"o\n"),
        vertex("a", "[1/2] RUN true", started=STARTED, completed=ENDED),
        vertex("b", "[2/2] RUN x", started=STARTED, completed=ENDED, cached=True),
    ) == [
        "2026-01-01T00:00:01Z #1 [1/2] RUN true",
        "2026-01-01T00:00:02Z #1 one",
        "2026-01-01T00:00:02Z #1 two",
        "2026-01-01T00:00:03Z #1 DONE 2.5s",
        "2026-01-01T00:00:01Z #2 [2/2] RUN x",
        "2026-01-01T00:00:03Z #2 CACHED",
    ]


def test_an_end_that_is_told_twice_is_shown_once() -> None:
    end = vertex("a", "x", started=STARTED, completed=ENDED, error="exit code: 1")
    assert lines(end, end)[1:] == ["2026-01-01T00:00:03Z #1 ERROR: exit code: 1"]


def test_output_without_a_last_newline_belongs_to_the_failing_step() -> None:
    progress = Progress()
    lines(
        vertex("a", "x", started=STARTED),
        log("a", b"no newline"),
        vertex("a", "x", completed=ENDED, error="e"),
        progress=progress,
    )
    [failed] = progress.failed
    assert list(failed.tail) == ["no newline"]


def test_only_the_end_of_a_long_output_is_kept() -> None:
    progress = Progress()
    lines(log("a", b"".join(b"%d\n" % number for number in range(1000))), progress=progress)
    lines(vertex("a", "x", completed=ENDED, error="e"), progress=progress)
    assert list(progress.failed[0].tail) == [str(number) for number in range(1000 - TAIL_LINES, 1000)]


def test_terminal_tricks_and_redrawn_lines_are_plain_text() -> None:
    tricks = (
        b"\x1b[2J\x1b[31mred\x1b[0m\n\x1b]0;title\x07x\n10%\r50%\r100%\r\n\x00\x9b\n\xff\n"
        + b"y" * 5000
        + b"\n"
    )
    shown = [line.partition(" #1")[2] for line in lines(log("a", tricks))]
    assert shown[:3] == [" red", " x", " 100%"]
    assert all(line.isprintable() and len(line) <= 2001 for line in shown)


def test_a_hostile_output_cannot_pretend_to_be_a_step() -> None:
    [line] = lines(log("a", b"#2 ERROR: broken\n"))
    assert line.endswith("#1 #2 ERROR: broken")


def test_events_of_another_shape_are_passed_over() -> None:
    strange: list[dict[str, Any]] = [
        {"vertexes": "x", "logs": [1, None, {"vertex": "a", "data": "!"}]},
        {"vertexes": [{"name": 3}]},
        {"statuses": [{"id": "x"}]},
        {},
    ]
    assert lines(*strange) == []


def test_times_that_are_none_give_no_duration() -> None:
    assert lines(vertex("a", "x", started="yesterday", completed="today"))[-1].endswith("#1 DONE 0.0s")
