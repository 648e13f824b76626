"""The picture of a run in a terminal."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from argo_harbor.bundle.merge import merge
from argo_harbor.bundle.observed import Observed, Step
from argo_harbor.bundle.results import Survey, survey
from argo_harbor.cli import looking, watch
from argo_harbor.errors import PlatformError
from tests.support.records import Run, make_run


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Engine:
    """Tells of one run, a little further each time."""

    def __init__(self, run: Run, looks: list[Any]) -> None:
        self._run = run
        self._looks = looks

    def survey(self, run_id: str) -> Survey:
        look = self._looks.pop(0)
        if isinstance(look, Exception):
            raise look
        if look is None:
            for index in range(len(self._run.head.tasks)):
                self._run.add(index, rewards={"reward": 1.0})
            merge(run_id, self._run.store, plan=self._run.plan)
        found = survey(run_id, self._run.store, engine="argo", plan=self._run.plan)
        return replace(found, observed=look or Observed())


def test_a_live_table_of_what_is_on_its_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path, 40)
    building = Observed(
        details={39: "building its image: pending: no room"},
        building=frozenset({39}),
        steps=(Step("build-x", "running", "no room"), Step("network-base", "succeeded")),
    )
    trouble = PlatformError("platform_unreachable", "nobody answers")
    engine = Engine(run, [building, trouble, None])
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(looking, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setenv("COLUMNS", "160")
    assert watch.follow(engine, run.run_id, picture=True) == 0  # type: ignore[arg-type]
    said = terminal.getvalue()
    assert "build-x  running  no room" in said
    assert "acme/task-039" in said
    assert "building its image: pending: no room" in said
    assert "network-base" not in said
    assert "and 10 more" in said
    assert "nobody answers; looking again" in said
    assert "40 succeeded" in said


def test_a_plan_that_cannot_be_read_is_not_waited_out(tmp_path: Path) -> None:
    engine = Engine(make_run(tmp_path, 1), [PlatformError("plan_unreadable", "broken")])
    with pytest.raises(PlatformError, match="broken"):
        watch.follow(engine, "run-1", picture=False)  # type: ignore[arg-type]
