"""What a trial's files are called in the bundle."""

from __future__ import annotations

import pytest

from argo_harbor.bundle.evidence import names_of
from argo_harbor.bundle.trust import is_safe_path


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("trial.log", ["logs", "log:trial.log"]),
        ("trial/agent/trajectory.json", ["trace:atif", "trace:trial/agent/trajectory.json"]),
        ("trial/agent/oracle.txt", ["agent_logs", "log:trial/agent/oracle.txt"]),
        ("trial/verifier/test-stdout.txt", ["verifier_logs", "log:trial/verifier/test-stdout.txt"]),
        ("trial/verifier/result.json", ["json:trial/verifier/result.json"]),
        ("trial/result.json", ["result", "json:trial/result.json"]),
        ("trial/config.json", ["config", "json:trial/config.json"]),
        ("trial/artifacts/trajectory.json", ["artifact:trial/artifacts/trajectory.json"]),
    ],
)
def test_names(path: str, names: list[str]) -> None:
    assert [descriptor.name for descriptor in names_of(path)] == names


@pytest.mark.parametrize("path", ["a", "a/b c/…", "..a", "a/...", "x" * 255])
def test_paths_that_stay(path: str) -> None:
    assert is_safe_path(path)


@pytest.mark.parametrize(
    "path", ["", "/a", "a/", "a//b", ".", "..", "a/../b", "a\\b", "a\nb", "x" * 256, "a/" * 3000]
)
def test_paths_that_may_leave(path: str) -> None:
    assert not is_safe_path(path)
