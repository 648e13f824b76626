"""The exit status of a pod command decides whether Argo starts another pod for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import pytest

from argo_harbor.errors import HarborError, PlatformError, Refused
from argo_harbor.runner.exits import Again, run_command


def raising(error: Exception) -> Callable[[], int]:
    def command() -> NoReturn:
        raise error

    return command


def test_a_command_that_returns_decides_by_itself() -> None:
    assert run_command(lambda: 1) == 1


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (PlatformError("store_unreadable", "no answer"), 75),
        (PlatformError("store_write_failed", "no answer"), 75),
        (PlatformError("plan_unreadable", "newer"), 1),
        (PlatformError("run_id_reused", "another's"), 1),
        (Refused("source_unreadable", "broken archive"), 1),
    ],
)
def test_only_faults_that_may_pass_ask_for_another_try(
    error: HarborError, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(raising(error)) == status
    assert f"error[{error.code}]: {error.message}" in capsys.readouterr().err


def test_a_hint_is_printed_too(capsys: pytest.CaptureFixture[str]) -> None:
    run_command(raising(PlatformError("plan_unreadable", "newer", "use a newer runner")))
    assert "hint: use a newer runner" in capsys.readouterr().err


def test_a_passing_fault_says_what_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(raising(Again("the registry does not answer"))) == 75
    assert capsys.readouterr().err == "try again: the registry does not answer\n"
