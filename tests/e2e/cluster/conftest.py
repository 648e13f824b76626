"""One user of the cluster for all tests; what their runs made is gone after the last of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.e2e.cluster.assault import Assault, assault
from tests.e2e.cluster.remote import Remote, runs_made
from tests.support.program import EXAMPLES, Program


@pytest.fixture(scope="session")
def remote(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
    folder = tmp_path_factory.mktemp("remote")
    user = Remote(cluster, Program(folder / "store", folder))
    before = set(runs_made(user))
    yield user
    made = [name for name in runs_made(user) if name not in before]
    for name in made:
        user.delete(name)
    assert [left for name in made for left in user.left_of(name)] == []


@pytest.fixture(scope="session")
def mixed_run(remote: Remote) -> str:
    """The mixed suite with the oracle, run once for many tests."""
    return remote.run(EXAMPLES / "mixed")


@pytest.fixture(scope="session")
def attacks(remote: Remote, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Assault]:
    """What sandboxes could do to everything around them, tried once for many tests."""
    with assault(remote, tmp_path_factory.mktemp("attacks")) as done:
        yield done
