"""Real runs of the example suites, made once and looked at by many tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.program import EXAMPLES, Done, Program

LOCAL = ("--engine", "local", "--base", "preview")
"""Fixtures of a session are made before a test's own settings are, so a cluster may be in sight."""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path / "store", tmp_path)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A store that several tests read."""
    folder = tmp_path_factory.mktemp("shared")
    return Program(folder / "store", folder)


@pytest.fixture(scope="session")
def mixed_oracle(shared: Program) -> Done:
    return submit_mixed(shared, "oracle")


@pytest.fixture(scope="session")
def mixed_nop(shared: Program) -> Done:
    return submit_mixed(shared, "nop")


def submit_mixed(program: Program, agent: str) -> Done:
    suite = EXAMPLES / "mixed"
    return program("runs", "submit", "--harbor-dir", suite, "--agent", agent, *LOCAL, "--json")
