"""The stores that the contract holds for."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from argo_harbor.store.base import Store
from argo_harbor.store.credentials import Credentials
from argo_harbor.store.directory import DirectoryStore
from argo_harbor.store.patience import Patience
from argo_harbor.store.s3 import S3Store
from tests.support.s3server import S3Server

QUICK = Patience(attempts=4, first=0.01, longest=0.05, total=10.0)


def open_s3(server: S3Server, *, endpoint: str = "", root: str = "", patience: Patience = QUICK) -> S3Store:
    """A store of its own in the server's bucket."""
    return S3Store(
        endpoint or server.endpoint,
        server.bucket,
        root=root or f"tests/{secrets.token_hex(6)}",
        credentials=Credentials(server.access_key, server.secret_key),
        patience=patience,
    )


@pytest.fixture
def make_s3(s3_server: S3Server) -> Callable[[], S3Store]:
    return lambda: open_s3(s3_server)


@pytest.fixture(params=["directory", pytest.param("s3", marks=pytest.mark.services)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "directory":
        return DirectoryStore(tmp_path / "store")
    return open_s3(request.getfixturevalue("s3_server"))
