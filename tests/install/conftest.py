"""Platform files, and an API server in memory with a connection to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.connect import connect
from tests.support import api_server
from tests.support.whole_api import WholeApi

PLATFORM = """\
# Our cluster
schema = "platform-1"
namespace = "evals"
registry = "registry.example:5000/suites"

[store]
endpoint = "http://store.example:9000"
bucket = "results"

[groups]
python = ["python.example"]
debian = ["debian.example"]
node = ["node.example"]
"""


@pytest.fixture
def platform_file(tmp_path: Path) -> Path:
    file = tmp_path / "site" / "platform.toml"
    file.parent.mkdir()
    file.write_text(PLATFORM)
    return file


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeApi]:
    with api_server.running(WholeApi()) as server:
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path)))
        yield server


@pytest.fixture
def connection(api: WholeApi) -> Cluster:
    return connect(namespace="evals")
