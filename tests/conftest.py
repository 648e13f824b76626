"""What all tests share."""

from __future__ import annotations

import os

import pytest

pytest_plugins = [
    "tests.support.fixtures_api",
    "tests.support.fixtures_argo",
    "tests.support.fixtures_cluster",
    "tests.support.fixtures_git",
    "tests.support.fixtures_hub",
    "tests.support.fixtures_s3",
]

os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", ".cache/hypothesis")


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test reads or writes the settings and stores of whoever runs it."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    # The user's own file may name a cluster that runs at this moment.
    monkeypatch.setenv("KUBECONFIG", str(home / "kubeconfig"))
    for name in ("ARGO_HARBOR_PLATFORM", "ARGO_HARBOR_STORE"):
        monkeypatch.delenv(name, raising=False)
