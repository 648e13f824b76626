"""A dataset of Harbor's Hub: `--harbor-hub`.

The Hub is asked each time, also for a pinned dataset whose tasks are all in the cache: only it knows the
names behind a digest and who may see them. Tasks that are in the cache are not fetched again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from argo_harbor.errors import Refused
from argo_harbor.model.taskset import Taskset
from argo_harbor.sources.directory import deprecations, taskset_digest, taskset_name
from argo_harbor.sources.hub.asking import Patience
from argo_harbor.sources.hub.cache import HubCache
from argo_harbor.sources.hub.client import HubClient, cache_folder
from argo_harbor.sources.hub.dataset import HubDataset, check_dataset, members_of
from argo_harbor.sources.hub.ref import HubRef, parse_ref
from argo_harbor.sources.hub.tasks import HubTasks
from argo_harbor.sources.selection import select_members
from argo_harbor.sources.source import Listing, Selection


class HubSource:
    """See `TaskSource`."""

    def __init__(
        self,
        text: str,
        *,
        say: Callable[[str], None] = lambda text: None,
        patience: Patience | None = None,
    ) -> None:
        self._text = text
        self._say = say
        self._patience = patience or Patience()

    def list(self, tasks: Selection = None) -> Listing:
        asked = parse_ref(self._text)

        async def listing(hub: HubClient, _: HubCache) -> Listing:
            dataset = await self._dataset(hub, asked)
            whole = _empty(dataset)
            chosen = select_members(whole.name, whole.members, tasks)
            named = tuple((index, whole.members[index]) for index in chosen)
            return Listing(whole.ref, whole.total, named, whole.origin, whole.warnings)

        return self._talk(listing)

    def load(self, tasks: Selection = None) -> Taskset:
        asked = parse_ref(self._text)

        async def loading(hub: HubClient, cache: HubCache) -> Taskset:
            dataset = await self._dataset(hub, asked)
            self._say("Its packages hold build, solution and verifier code that will run")
            whole = _empty(dataset)
            chosen = select_members(whole.name, whole.members, tasks)
            bringing = HubTasks(hub, cache, self._say)
            found = await bringing.bring([whole.members[index] for index in chosen])
            findings = [finding for member in found for finding in member.findings]
            if findings:
                raise Refused.of(findings)
            warnings = [warning for member in found for warning in member.warnings]
            return replace(
                whole,
                tasks=tuple(member.as_task(index) for index, member in zip(chosen, found, strict=True)),
                warnings=(*whole.warnings, *bringing.warnings, *warnings, *deprecations(found)),
            )

        return self._talk(loading)

    def _talk[T](self, work: Callable[[HubClient, HubCache], Awaitable[T]]) -> T:
        cache = HubCache(cache_folder())

        async def talk() -> T:
            hub = HubClient(self._patience)
            try:
                await hub.open()
                return await work(hub, cache)
            finally:
                await hub.close()

        return asyncio.run(talk())

    async def _dataset(self, hub: HubClient, asked: HubRef) -> HubDataset:
        dataset = await hub.dataset(asked)
        check_dataset(dataset, asked)
        self._say(f"Hub dataset {dataset.pinned}")
        return dataset


def _empty(dataset: HubDataset) -> Taskset:
    """The taskset of the dataset with no task of it read."""
    members = members_of(dataset)
    return Taskset(
        taskset_name(dataset.name),
        taskset_digest(members),
        (),
        len(members),
        dataset.warnings,
        members,
        dataset.origin,
    )
