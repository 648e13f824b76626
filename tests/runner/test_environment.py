"""Harbor's environment over sandboxes that are slow to go, or lack what they need."""

from __future__ import annotations

import asyncio
import logging
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from harbor.models.task.config import TaskOS

from argo_harbor.model.plan import ServiceVariable
from argo_harbor.runner import environment as environments
from argo_harbor.runner import session as sessions
from argo_harbor.runner.environment import SandboxEnvironment
from argo_harbor.sandbox.base import ExecResult, SandboxStartFailed
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


class WithoutFolders:
    """An image that has nothing but its root."""

    def __init__(self, *, makes: bool) -> None:
        self.folders = {"/"}
        self._makes = makes

    async def start(self) -> None:
        pass

    async def exec(self, command: str, *, cwd: str | None = None, **_: object) -> ExecResult:
        if cwd is not None and cwd not in self.folders:
            return ExecResult(stdout="", stderr=f"no folder {cwd}", return_code=126)
        if not self._makes:
            return ExecResult(stdout="", stderr="read-only file system", return_code=1)
        self.folders |= {word for word in shlex.split(command) if word.startswith("/")}
        return ExecResult(stdout="", stderr="", return_code=0)


def bare_environment(monkeypatch: pytest.MonkeyPatch, sandbox: WithoutFolders) -> SandboxEnvironment:
    class Factory:
        async def make(self, *_: object) -> WithoutFolders:
            return sandbox

    class Policy:
        async def apply(self, *_: object) -> None:
            pass

    session = a_session()
    session.sandboxes, session.policy = Factory(), Policy()  # type: ignore[assignment]
    sessions.bind(session)
    environment = SandboxEnvironment.__new__(SandboxEnvironment)
    environment._sandbox = None
    environment.session_id = "trial__env"
    environment.trial_paths = SimpleNamespace(trial_dir=Path("trial"))
    environment.task_env_config = SimpleNamespace(
        docker_image="bare:1", workdir="/work/here", os=TaskOS.LINUX
    )
    environment.environment_dir = Path("/nowhere")
    environment._mounts = [{"target": "/logs/agent"}, {"target": "/logs/verifier"}]
    for name in ("_merge_env", "_resolve_user", "_reset_dirs_user"):
        monkeypatch.setattr(SandboxEnvironment, name, lambda *_: None)

    async def nothing(_: object) -> None:
        pass

    monkeypatch.setattr(SandboxEnvironment, "_upload_environment_dir_after_start", nothing)
    return environment


def test_a_working_directory_that_the_image_lacks_is_made_before_anything_runs_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sandbox = WithoutFolders(makes=True)
    asyncio.run(bare_environment(monkeypatch, sandbox).start(force_build=False))
    assert {"/work/here", "/logs/agent", "/logs/verifier"} <= sandbox.folders


def test_a_sandbox_in_which_no_folders_can_be_made_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = bare_environment(monkeypatch, WithoutFolders(makes=False))
    with pytest.raises(SandboxStartFailed, match="read-only file system"):
        asyncio.run(environment.start(force_build=False))


def test_commands_get_the_variables_of_the_compose_file_under_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment = bare_environment(monkeypatch, WithoutFolders(makes=True))
    monkeypatch.setattr(SandboxEnvironment, "_merge_env", lambda _, env: env)
    monkeypatch.setenv("TOKEN", "granted")
    session = sessions.current()
    own = (
        ServiceVariable(name="MODE", text="{{fast}}"),
        ServiceVariable(name="KEY", granted="TOKEN"),
        ServiceVariable(name="PLACE", text="file"),
    )
    assert environment._variables({"A": "1"}) == {"A": "1"}
    session.part = session.part.model_copy(update={"main_environment": own})
    assert environment._variables({"PLACE": "task"}) == {
        "MODE": "{{fast}}",
        "KEY": "granted",
        "PLACE": "task",
    }
    environment.session_id = "trial__verifier__trial"
    assert environment._variables(None) is None
