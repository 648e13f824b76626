"""Harbor's verifier with our own clock, our own reading of rewards and a look for forgeries.

Harbor makes it from its import path for every grading, of the trial or of a step. Harbor's own clock is set
later than ours, so that the second of watching for reward files that come back costs no verifier its time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, override

from harbor.models.task.verifier_mode import resolve_verifier_environment_definition
from harbor.models.verifier.result import VerifierResult
from harbor.trial.errors import VerifierTimeoutError
from harbor.verifier.verifier import Verifier, VerifierOutputParseError

from argo_harbor.runner.environment import SandboxEnvironment
from argo_harbor.runner.outcome import INFRASTRUCTURE, REWARD_ERRORS, Failure, Graded
from argo_harbor.runner.rewards import Reading, read_rewards
from argo_harbor.runner.session import Session, current

HARBOR_SLACK_SECONDS = 120.0
"""What Harbor's clock leaves after ours: the downloads and the watch."""


class RewardTampered(VerifierOutputParseError):  # type: ignore[misc]  # Harbor is not type-checked with us
    """A reward path is what no verifier leaves there."""


class WatchedVerifier(Verifier):  # type: ignore[misc]  # Harbor is not type-checked with us
    """Grades once and leaves what it saw in the session."""

    environment: SandboxEnvironment

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if self.environment.is_verifier:
            config = self.task.config
            step = next((step for step in config.steps or () if step.name == self.step_name), None)
            definition = resolve_verifier_environment_definition(config, self.task.paths, step)
            self._skip_tests_upload = definition is not None and definition.bundled_tests

    @override
    async def verify(self) -> VerifierResult:
        session = current()
        try:
            return await self._grade(session)
        finally:
            if session.part.steps:
                # Harbor has no event for it: the next step's files come before its agent starts.
                await session.apply("deny")

    async def _grade(self, session: Session) -> VerifierResult:
        step = self.step_name or ""
        limit = session.timeouts(step).verifier
        self.environment.forget_rewards()
        try:
            async with asyncio.timeout(limit):
                result = await super().verify()
        except TimeoutError as error:
            session.fail(step, Failure("VerifierTimeoutError", f"not done after {limit:g} s", "verifier"))
            raise VerifierTimeoutError(f"Verifier execution timed out after {limit:g} seconds") from error
        except Exception as error:
            if type(error).__name__ not in REWARD_ERRORS:
                session.fail(step, Failure(type(error).__name__, str(error), "verifier", _root(error)))
                raise
            if step not in session.gradings:
                # Harbor does not read what is not there.
                self._note(read_rewards(self.trial_paths.verifier_dir, self.environment.irregular))
            await self._watch()
            raise
        await self._watch()
        return result

    async def _watch(self) -> None:
        session = current()
        session.graded()
        if not session.tampered:
            session.tampered = await self.environment.watch_rewards()

    @override
    async def _remove_reward_files(self) -> None:
        try:
            await super()._remove_reward_files()
        except RuntimeError as error:
            detail = "what lay at the reward paths before grading could not be removed"
            reading = Reading(None, "reward_tampered", detail)
            self._note(reading)
            raise RewardTampered(reading.detail) from error

    @override
    def _parse_reward_json(self) -> dict[str, float | int]:
        return self._read()

    @override
    def _parse_reward_text(self) -> dict[str, float | int]:
        return self._read()

    def _read(self) -> dict[str, float | int]:
        reading = read_rewards(self.trial_paths.verifier_dir, self.environment.irregular)
        self._note(reading)
        if reading.rewards is None:
            kind = RewardTampered if reading.problem == "reward_tampered" else VerifierOutputParseError
            raise kind(reading.detail)
        return dict(reading.rewards)

    def _note(self, reading: Reading) -> None:
        session = current()
        step = self.step_name or ""
        session.gradings[step] = Graded(step, reading)
        if reading.problem == "reward_tampered" and not session.tampered:
            session.tampered = reading.detail


def _root(error: BaseException) -> str:
    """Name of the sandbox's own error behind an exception of Harbor's, else an empty text."""
    return next((name for name in _chain(error) if name in INFRASTRUCTURE), "")


def _chain(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        yield type(error).__name__
        error = error.__cause__ or error.__context__
