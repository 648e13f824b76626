"""The chosen tasks of a dataset, from Harbor's cache or from the Hub, several at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from argo_harbor.errors import Finding, HarborError, PlatformError, Refused
from argo_harbor.model.taskset import TasksetMember, Warned
from argo_harbor.sources.hub.cache import HubCache
from argo_harbor.sources.hub.client import HubClient
from argo_harbor.sources.member import Member
from argo_harbor.sources.source import program_folder

AT_A_TIME = 8
SAY_EVERY = 5.0
"""Seconds between two lines of progress."""


class HubTasks:
    """Brings tasks to this machine, once."""

    def __init__(self, hub: HubClient, cache: HubCache, say: Callable[[str], None]) -> None:
        self._hub = hub
        self._cache = cache
        self._say = say
        self._members: dict[str, Member] = {}
        self._problems: list[HarborError] = []
        self._done = 0
        self._warned: list[Warned] = []

    @property
    def warnings(self) -> list[Warned]:
        """About the versions that were fetched, by name."""
        return sorted(self._warned, key=lambda warned: warned.task)

    async def bring(self, wanted: Sequence[TasksetMember]) -> list[Member]:
        """The tasks in the order of `wanted`, with what is wrong in them.

        Raises Refused with everything that is wrong with what the Hub sent, PlatformError
        `source_unreachable`, after which what came stays in the cache.
        """
        missing = await asyncio.to_thread(self._look, wanted)
        if missing:
            self._say(self._plan(missing, len(wanted)))
            await self._fetch_all(missing)
        if self._problems:
            raise self._joined(len(missing))
        return [self._members[task.name] for task in wanted]

    async def _fetch_all(self, missing: Sequence[TasksetMember]) -> None:
        folder = program_folder("hub")
        slots = asyncio.Semaphore(AT_A_TIME)
        said = time.monotonic()

        async def fetch(task: TasksetMember) -> None:
            nonlocal said
            async with slots:
                # A Hub that is gone would be waited for once more for every task.
                if any(isinstance(problem, PlatformError) for problem in self._problems):
                    return
                await self._fetch(task, folder / task.name.replace("/", "@"))
            if time.monotonic() - said > SAY_EVERY:
                said = time.monotonic()
                self._say(f"{self._done} of {len(missing)} tasks are here")

        async with asyncio.TaskGroup() as group:
            for task in missing:
                group.create_task(fetch(task))

    def _plan(self, missing: Sequence[TasksetMember], wanted: int) -> str:
        text = f"Fetching {len(missing)} of {wanted} tasks"
        if len(missing) < wanted:
            text += "; the others are in Harbor's cache"
        changed = sum(map(self._cache.has_some, missing))
        return f"{text}; {changed} had a copy there that was changed" if changed else text

    def _look(self, wanted: Sequence[TasksetMember]) -> list[TasksetMember]:
        """Read what the cache has; gives the others."""
        for task in wanted:
            member = self._cache.read(task)
            if member is not None:
                self._members[task.name] = member
        return [task for task in wanted if task.name not in self._members]

    async def _fetch(self, task: TasksetMember, archive: Path) -> None:
        try:
            warned = await self._hub.fetch(task, archive)
            self._members[task.name] = await asyncio.to_thread(self._keep, task, archive)
        except HarborError as error:
            self._problems.append(error)
            return
        finally:
            archive.unlink(missing_ok=True)
        self._done += 1
        if warned is not None:
            self._warned.append(warned)

    def _keep(self, task: TasksetMember, archive: Path) -> Member:
        self._cache.keep(task, archive)
        member = self._cache.read(task)
        if member is None:
            hint = "see what else writes to Harbor's cache, and repeat the command"
            raise Refused.of([Finding("source_changed", "changed while it was read", hint, task=task.name)])
        return member

    def _joined(self, missing: int) -> HarborError:
        unreachable = [problem for problem in self._problems if isinstance(problem, PlatformError)]
        findings = [finding for problem in self._problems for finding in problem.items]
        findings.sort(key=lambda finding: finding.task)
        if unreachable:
            first = unreachable[0]
            message = f"{first.message}; {self._done} of {missing} tasks were fetched and stay in the cache"
            return PlatformError(first.code, message, first.hint, findings)
        return Refused.of(findings)
