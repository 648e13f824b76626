"""Pytest fixtures for the tests marked ``lint``; ``tests/conftest.py`` loads them as a plugin.

On a machine without a recent Go these tests are skipped and say why, so that a newcomer's ``make test`` ends
green. In continuous integration (``CI=true``) the same is a failure: there, nobody would notice that nothing
was checked.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support import argo, argo_crd, gotools

Lint = Callable[..., "subprocess.CompletedProcess[str]"]
CrdErrors = Callable[[dict[str, Any]], list[str]]


@pytest.fixture(scope="session")
def argo_lint(request: pytest.FixtureRequest) -> Lint:
    """:func:`tests.support.argo.lint` with the program built; takes a path, several paths, or text."""
    binary = _or_skip(lambda: argo.argo_binary(say=_reporter(request)))

    def lint(workflows: str | Path | Sequence[Path], **options: Any) -> subprocess.CompletedProcess[str]:
        return argo.lint(workflows, binary=binary, **options)

    return lint


@pytest.fixture(scope="session")
def workflow_crd(request: pytest.FixtureRequest) -> CrdErrors:
    """A function from an emitted object of any kind to what the API server would find wrong with it."""
    say = _reporter(request)
    validators = _or_skip(lambda: {kind: argo.crd_validator(kind, say=say) for kind in argo_crd.KINDS})

    def errors(document: dict[str, Any]) -> list[str]:
        kind = document.get("kind")
        if kind not in validators:
            return [f"kind: {kind!r} is none of {', '.join(validators)}"]
        return validators[kind].errors(document)

    return errors


def _reporter(request: pytest.FixtureRequest) -> gotools.Say:
    """Where progress can be seen: a captured line is of no use to somebody who waits for a compiler."""
    terminal = request.config.pluginmanager.getplugin("terminalreporter")
    return terminal.write_line if terminal else print


def _or_skip[T](prepare: Callable[[], T]) -> T:
    try:
        return prepare()
    except gotools.ToolUnavailable as reason:
        if os.environ.get("CI") == "true":
            pytest.fail(f"argo is not available: {reason}", pytrace=False)
        pytest.skip(f"argo is not available: {reason}")
