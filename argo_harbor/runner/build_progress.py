"""BuildKit's progress events (`--progress rawjson`), turned into lines to read and into what a record needs.

Logs of Dockerfile commands are foreign text: they reach only the lines of their own step, without control
characters.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

TAIL_LINES = 40
"""Of a step's output: what a record shows of a failing one."""
_MAX_LINE = 2000
_MAX_PARTIAL = 1 << 16
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|.)")
_BASE = re.compile(r"(?:\[.*\] )?FROM (?P<name>[^\s@]+)@(?P<digest>sha256:[0-9a-f]{64})")


@dataclass(slots=True)
class Step:
    """One vertex of the build's graph."""

    number: int
    name: str = ""
    started: str = ""
    completed: str = ""
    cached: bool = False
    error: str = ""
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL_LINES))
    partial: str = ""
    """Output after the last line's end."""


class Progress:
    """Follows one build. `redact` takes out of texts what must not be shown."""

    def __init__(self, redact: Callable[[str], str] = str) -> None:
        self._redact = redact
        self._steps: dict[str, Step] = {}
        self.bases: dict[str, str] = {}
        """Digests of base images by name."""

    @property
    def failed(self) -> list[Step]:
        """Steps with an error of their own, the first to end first."""
        return sorted((step for step in self._steps.values() if step.error), key=lambda step: step.completed)

    def feed(self, event: Mapping[str, object]) -> Iterator[str]:
        """Take one event; gives the lines to show, each with its time and the number of its step."""
        for vertex in _objects(event, "vertexes"):
            yield from self._vertex(vertex)
        for log in _objects(event, "logs"):
            yield from self._log(log)

    def _vertex(self, vertex: Mapping[str, object]) -> Iterator[str]:
        step = self._step(vertex)
        name, started = str(vertex.get("name") or ""), str(vertex.get("started") or "")
        if name and not step.name:
            step.name = self._cleaned(name)
            if found := _BASE.fullmatch(step.name):
                self.bases[found["name"]] = found["digest"]
        if started and not step.started:
            step.started = started
            yield _line(started, step, step.name)
        completed = str(vertex.get("completed") or "")
        if not completed or step.completed:
            return
        if step.partial:
            yield from self._add(step, completed, step.partial)
            step.partial = ""
        step.completed = completed
        step.cached = bool(vertex.get("cached"))
        step.error = self._cleaned(str(vertex.get("error") or ""))
        if step.error:
            yield _line(completed, step, f"ERROR: {step.error}")
        elif step.cached:
            yield _line(completed, step, "CACHED")
        else:
            yield _line(completed, step, f"DONE {_seconds(step.started, completed):.1f}s")

    def _log(self, log: Mapping[str, object]) -> Iterator[str]:
        step = self._step(log)
        try:
            text = base64.b64decode(str(log.get("data") or "")).decode(errors="replace")
        except binascii.Error:
            return
        # Values are looked for before anything is cut off, or half of one would stay.
        *whole, step.partial = self._redact(step.partial + text).split("\n")
        step.partial = step.partial[-_MAX_PARTIAL:]
        for line in whole:
            yield from self._add(step, str(log.get("timestamp") or ""), line)

    def _add(self, step: Step, at: str, line: str) -> Iterator[str]:
        # A progress bar redraws its line by carriage returns: the last drawing is what stands there.
        shown = _clean(line.rstrip("\r").rpartition("\r")[2])
        step.tail.append(shown)
        yield _line(at, step, shown)

    def _cleaned(self, text: str) -> str:
        return _clean(self._redact(text))

    def _step(self, about: Mapping[str, object]) -> Step:
        digest = str(about.get("digest") or about.get("vertex") or "")
        return self._steps.setdefault(digest, Step(len(self._steps) + 1))


def _objects(event: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    found = event.get(key)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _line(at: str, step: Step, text: str) -> str:
    return f"{at[:19]}Z #{step.number} {text}"


def _clean(text: str) -> str:
    plain = _ESCAPE.sub("", text).replace("\t", "    ")
    return "".join(char if char.isprintable() else " " for char in plain)[:_MAX_LINE].rstrip()


def _seconds(started: str, completed: str) -> float:
    try:
        # Go writes nanoseconds, which Python reads since 3.11 by cutting them.
        return (datetime.fromisoformat(completed) - datetime.fromisoformat(started)).total_seconds()
    except ValueError:
        return 0.0
