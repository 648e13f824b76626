"""Pytest fixtures for the tests marked ``services``; ``tests/conftest.py`` loads them as a plugin.

Where there is no usable Go they are skipped and say why; in continuous integration that is a failure.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from argo_harbor.store.base import Store
from argo_harbor.store.directory import DirectoryStore
from tests.support import gotools, s3server
from tests.support.s3server import S3Server
from tests.support.stores import open_s3


@pytest.fixture(scope="session")
def s3_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3 server for the whole session; whoever uses it takes a root of its own in the bucket."""
    terminal = request.config.pluginmanager.getplugin("terminalreporter")
    try:
        gotools.build(s3server.VERSITYGW, say=terminal.write_line if terminal else print)
    except gotools.ToolUnavailable as reason:
        if os.environ.get("CI") == "true":
            pytest.fail(f"versitygw is not available: {reason}", pytrace=False)
        pytest.skip(f"versitygw is not available: {reason}")
    with s3server.running(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(params=["directory", pytest.param("s3", marks=pytest.mark.services)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store of each kind: what uses one must work on both."""
    if request.param == "directory":
        return DirectoryStore(tmp_path / "store")
    return open_s3(request.getfixturevalue("s3_server"))
