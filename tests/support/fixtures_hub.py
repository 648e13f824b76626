"""A Hub with one dataset, for the tests of `--harbor-hub`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from argo_harbor.errors import HarborError
from argo_harbor.model.taskset import Taskset
from argo_harbor.sources.hub.asking import Patience
from argo_harbor.sources.hub.source import HubSource
from tests.support.suites import make_suite

if TYPE_CHECKING:
    from tests.support.hub_server import DatasetVersion, Hub

NAME = "acme/mini"


@dataclass
class HubSite:
    """A Hub, the home of its user, and a suite of three tasks that is published on it."""

    hub: Hub
    suite: Path
    """All tests read it, and none may change it."""
    home: Path
    cache: Path
    """Where Harbor keeps packages."""
    version: DatasetVersion
    said: list[str] = field(default_factory=list)
    """Lines for the user."""

    @property
    def folders(self) -> list[Path]:
        return sorted(self.suite.iterdir())

    def source(self, text: str = NAME, **patience: float) -> HubSource:
        return HubSource(text, say=self.said.append, patience=Patience(**{"pause": 0, **patience}))

    def load(self, text: str = NAME, tasks: Any = None, **patience: float) -> Taskset:
        return self.source(text, **patience).load(tasks)

    def fails(self, text: str = NAME, **patience: float) -> HarborError:
        """The error of a load."""
        with pytest.raises(HarborError) as caught:
            self.load(text, **patience)
        return caught.value


@pytest.fixture(scope="session")
def hub_suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_suite(tmp_path_factory.mktemp("hub") / "mini", tasks=3)


@pytest.fixture
def hub_site(hub_suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubSite]:
    # Harbor takes a while to import, which most tests do not need.
    from tests.support.hub_server import point_harbor_at, serving_hub

    home = tmp_path / "home"
    home.mkdir()
    with serving_hub() as hub:
        cache = point_harbor_at(hub, monkeypatch, home)
        version = hub.publish(NAME, *sorted(hub_suite.iterdir()))
        yield HubSite(hub, hub_suite, home, cache, version)
