"""What a person or a pipeline is told on a machine where the Go tools cannot be built."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import argo, gotools


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH, empty at first, beside an empty cache."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv(gotools.CACHE_VARIABLE, str(tmp_path / "cache"))
    return folder


def put_go(folder: Path, *, version: str, otherwise: str = "exit 1") -> None:
    """Make a ``go`` that knows its version and does ``otherwise`` for any other command."""
    go = folder / "go"
    go.write_text(f'#!/bin/sh\nif [ "$1" = env ]; then echo {version}; else {otherwise}; fi\n')
    go.chmod(0o755)


def test_no_go(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert argo.main(["build"]) == argo.EXIT_NO_GO
    assert "no `go` on PATH; building argo needs Go 1.25.7 or newer" in capsys.readouterr().err


def test_go_too_old(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put_go(programs, version="go1.25.6")
    assert argo.main(["build"]) == argo.EXIT_NO_GO
    assert "`go` is go1.25.6; building argo needs Go 1.25.7 or newer" in capsys.readouterr().err


@pytest.mark.parametrize("version", ["go1.25.7", "go1.26", "go2.0rc1", "devel"])
def test_go_recent_enough(version: str, programs: Path) -> None:
    put_go(programs, version=version)
    gotools.require_go(argo.ARGO)


def test_failing_go_is_quoted_and_leaves_no_program(
    programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put_go(programs, version="go1.26", otherwise="echo checksum mismatch >&2; exit 1")
    assert argo.main(["build"]) == 1
    assert "checksum mismatch" in capsys.readouterr().err
    assert not (gotools.tool_folder(argo.ARGO) / "argo").exists()


@pytest.mark.lint
@pytest.mark.parametrize(("ci", "outcome"), [("", "1 skipped"), ("true", "1 error")])
def test_lint_without_go_is_skipped_by_hand_and_fails_in_ci(ci: str, outcome: str, programs: Path) -> None:
    one_test = "tests/workflow/test_lint.py::test_lint_takes_a_good_workflow"
    command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", one_test]
    result = subprocess.run(
        command,
        cwd=gotools.REPOSITORY,
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert outcome in result.stdout
    assert "no `go` on PATH" in result.stdout


def test_pinned_version() -> None:
    assert argo.ARGO.version == "v4.0.5"
    assert argo.ARGO.oldest_go == (1, 25, 7)


def test_sources_of_our_own_are_their_version(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module own.test/tool\n\ngo 1.25.0\n")
    (tmp_path / "main.go").write_text("package main\n")
    tool = gotools.GoTool(name="tool", folder="own", module="own.test/tool", source=tmp_path)
    before = tool.version
    assert tool.oldest_go == (1, 25, 0)
    (tmp_path / "README.md").write_text("no source")
    assert tool.version == before
    (tmp_path / "main.go").write_text("package main // changed\n")
    assert tool.version != before
