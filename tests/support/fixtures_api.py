"""A fixture with an API server in the test's own process; ``tests/conftest.py`` loads it as a plugin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import api_server
from tests.support.api_server import ApiServer


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    """The server, with `KUBECONFIG` naming it."""
    with api_server.running(ApiServer()) as double:
        monkeypatch.setenv("KUBECONFIG", str(double.write_kubeconfig(tmp_path / "kubeconfig")))
        yield double
