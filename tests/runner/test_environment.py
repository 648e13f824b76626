"""Harbor's environment over a sandbox that is slow to go."""

from __future__ import annotations

import asyncio
import logging

import pytest

from argo_harbor.runner import environment as environments
from argo_harbor.runner import session as sessions
from argo_harbor.runner.environment import SandboxEnvironment
from tests.runner.test_session import a_session


class SlowSandbox:
    """Its files take longer to remove than anybody waits."""

    async def stop(self) -> None:
        await asyncio.Event().wait()


def test_a_sandbox_that_is_slow_to_remove_is_no_fault_of_the_trial(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(environments, "STOP_SECONDS", 0.01)
    sessions.bind(a_session())
    environment = SandboxEnvironment.__new__(SandboxEnvironment)
    environment._sandbox = SlowSandbox()  # type: ignore[assignment]
    environment._watched = False
    environment.logger = logging.getLogger("trial")
    asyncio.run(environment.stop(delete=True))
    assert not environment.running
    assert "not removed within" in caplog.text
