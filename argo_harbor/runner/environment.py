"""Harbor's environment over one of our sandboxes.

Harbor makes it from its import path, once for the agent and once more for a verifier of its own, and calls
it by keyword. Network rules are not switched from here: Harbor skips the switch where two phases are equal
and widens the rules after the agent, so the phase hooks do it by the plan.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, override

from harbor.environments.base import BaseEnvironment, ExecResult, HealthcheckError
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities
from harbor.models.task.config import HealthcheckConfig, NetworkPolicy

from argo_harbor.model.record import ArtifactLink
from argo_harbor.runner.rewards import REWARD_FILES
from argo_harbor.runner.session import TransferTimeout, current
from argo_harbor.sandbox.base import Downloaded, Sandbox, SandboxError, SandboxStartFailed, TransferFailed

VERIFIER_FOLDER = "/logs/verifier"
STOP_SECONDS = 20.0
"""A sandbox that does not end in this time is left to the process that ends with it."""


class SandboxEnvironment(BaseEnvironment):  # type: ignore[misc]  # Harbor is not type-checked with us
    """One sandbox, from `start` to `stop`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._sandbox: Sandbox | None = None
        self._watched = False
        self.irregular: tuple[str, ...] = ()
        """Names at the top of the last downloaded verifier folder that were no regular files or folders."""
        super().__init__(*args, **kwargs)

    @staticmethod
    @override
    def type() -> str:
        return "argo-harbor"

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(
            gpus=True,
            disable_internet=True,
            network_allowlist=True,
            network_allowlist_hostnames=True,
            network_allowlist_wildcard_hostnames=True,
            network_allowlist_ipv4_addresses=True,
            network_allowlist_ipv6_addresses=True,
            network_allowlist_ipv4_cidrs=True,
            network_allowlist_ipv6_cidrs=True,
            dynamic_network_policy=True,
        )

    @classmethod
    @override
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        return EnvironmentResourceCapabilities(
            cpu_limit=True, cpu_request=True, memory_limit=True, memory_request=True, fractional_cpus=True
        )

    @override
    def _validate_definition(self) -> None:
        """The task was checked when it was planned."""

    @override
    async def _apply_network_policy(self, network_policy: NetworkPolicy) -> None:
        """Harbor's switch is not ours."""

    @property
    def is_verifier(self) -> bool:
        """Whether this is the sandbox of a separate verifier."""
        return bool(self.session_id != f"{self.trial_paths.trial_dir.name}__env")

    @property
    def running(self) -> bool:
        return self._sandbox is not None

    @property
    def sandbox(self) -> Sandbox:
        """Raises SandboxStartFailed before `start`."""
        if self._sandbox is None:
            raise SandboxStartFailed("the sandbox was not started")
        return self._sandbox

    @override
    async def start(self, force_build: bool) -> None:
        session = current()
        await session.apply("verifier" if self.is_verifier else "setup")
        try:
            async with asyncio.timeout(session.part.timeouts.start):
                image = self.task_env_config.docker_image or ""
                self._sandbox = await session.sandboxes.make(self._context(), self.session_id, image)
                await self._sandbox.start()
        except TimeoutError as error:
            raise SandboxStartFailed(f"not ready after {session.part.timeouts.start:g} s") from error
        if workdir := self.task_env_config.workdir:
            # Not yet in the folder itself, which a ready image need not have.
            _made(await self.exec(self._ensure_dirs_command([workdir], chmod=False), cwd="/"))
        _made(await self.ensure_dirs(self._mount_targets(writable_only=True)))
        await self._upload_environment_dir_after_start()

    def _context(self) -> Path | None:
        prebuilt = self.task_env_config.docker_image and not (self.environment_dir / "Dockerfile").exists()
        return None if prebuilt else self.environment_dir

    @override
    async def stop(self, delete: bool) -> None:
        if self._sandbox is None:
            return
        session = current()
        try:
            if self._watched and not session.tampered:
                session.tampered = await self.returned_rewards()
        except SandboxError as error:
            self.logger.debug("no last look at the reward files: %s", error)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._sandbox.stop()
        except TimeoutError:
            # No fault of the trial: what it runs has ended, its files go with the trial's folder.
            self.logger.warning("the sandbox was not removed within %g s", STOP_SECONDS)
        finally:
            self._sandbox = None

    @override
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        done = await self.sandbox.exec(
            command,
            cwd=cwd or self.task_env_config.workdir,
            env=self._variables(env),
            user=self._resolve_user(user),
            timeout_sec=timeout_sec,
        )
        return ExecResult(stdout=done.stdout, stderr=done.stderr, return_code=done.return_code)

    def _variables(self, env: dict[str, str] | None) -> dict[str, str] | None:
        """Of a command: the task's own win over those of its compose file, which are the container's."""
        merged: dict[str, str] | None = self._merge_env(env)
        if self.is_verifier or not (own := current().part.main_environment):
            return merged
        given = {each.name: os.environ[each.granted] if each.granted else each.text for each in own}
        return given | (merged or {})

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        await self._transfer(lambda: self.sandbox.upload(Path(source_path), target_path))

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        await self._transfer(lambda: self.sandbox.upload(Path(source_dir), target_dir))

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        target = Path(target_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        done = await self._transfer(lambda: self.sandbox.download_file(source_path, target))
        self._list_links(source_path, done, single=True)
        if not done.files:
            raise TransferFailed(f"{source_path} is no regular file")

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        if source_dir.rstrip("/") == VERIFIER_FOLDER:
            # A verifier that removed its folder has left no reward, which is no fault of the sandbox.
            await self.ensure_dirs([VERIFIER_FOLDER], chmod=False)
        done = await self._transfer(lambda: self.sandbox.download_folder(source_dir, Path(target_dir)))
        self._list_links(source_dir, done)
        if source_dir.rstrip("/") == VERIFIER_FOLDER:
            offered = (*(link.path for link in done.links), *done.skipped)
            self.irregular = tuple(name for name in REWARD_FILES if name in offered)

    def _list_links(self, source: str, done: Downloaded, *, single: bool = False) -> None:
        current().add_links(
            [
                ArtifactLink(
                    path=source if single else f"{source.rstrip('/')}/{link.path}", target=link.target
                )
                for link in done.links
            ]
        )

    async def _transfer[T](self, work: Callable[[], Awaitable[T]]) -> T:
        """Move files within what is left of the trial's time for that."""
        session = current()
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(session.part.timeouts.transfer - session.transfer_spent):
                return await work()
        except TimeoutError as error:
            raise TransferTimeout("moving files took too long") from error
        finally:
            session.transfer_spent += loop.time() - began

    @override
    async def run_healthcheck(self, healthcheck: HealthcheckConfig | None = None) -> None:
        """Harbor's loop, which has no end of its own, within the planned time."""
        session = current()
        limit = session.timeouts().healthcheck
        try:
            async with asyncio.timeout(limit or None):
                await super().run_healthcheck(healthcheck)
        except TimeoutError as error:
            raise HealthcheckError(f"not healthy after {limit:g} s") from error
        if session.phase == "sandbox":
            # Harbor has no event for it: the agent is set up as soon as the environment is healthy.
            session.enter("setup")

    async def kill_leftovers(self) -> None:
        """End what the agent left running."""
        await self.sandbox.kill_leftovers()

    def forget_rewards(self) -> None:
        """A new grading begins: a reward file is nothing to watch for until it was read."""
        self._watched = False

    async def watch_rewards(self) -> str:
        """Remove the reward files that were read and look whether they come back.

        Returns what came back, else an empty text. `stop` looks once more.
        """
        await self.exec(f"rm -rf -- {_reward_paths()}", cwd="/", user="root")
        await asyncio.sleep(1.0)
        self._watched = True
        return await self.returned_rewards()

    async def returned_rewards(self) -> str:
        tests = "; ".join(f"if [ -e {p} ] || [ -L {p} ]; then echo {p}; fi" for p in _reward_paths().split())
        found = await self.sandbox.exec(tests, cwd="/", user="root", timeout_sec=STOP_SECONDS)
        names = found.stdout.split()
        return f"{', '.join(names)} came back after it was read and removed" if names else ""


def _made(done: ExecResult | None) -> None:
    """Raises SandboxStartFailed when folders that everything else relies on could not be made."""
    if done is not None and done.return_code != 0:
        said = (done.stderr or done.stdout or "").strip()[:500]
        raise SandboxStartFailed(f"folders of the sandbox cannot be made: {said}")


def _reward_paths() -> str:
    return " ".join(f"{VERIFIER_FOLDER}/{name}" for name in REWARD_FILES)
