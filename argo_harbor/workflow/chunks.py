"""Cuts tasks into chunks: nested DAGs for a suite whose entries do not fit into one.

Tasks that share an image stand in one chunk with its build. An image with more tasks than a chunk holds is
built in the main DAG, and its tasks get chunks of their own that depend on that build alone: a chunk that
waited for two builds would lose all its tasks with either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from argo_harbor.workflow.tasks import PlannedTask

CHUNK_ENTRIES = 100
"""Entries of a chunk. Argo looks at every entry of an unfinished DAG each time, and its UI unfolds one at a
time."""


class Chunk(NamedTuple):
    """Tasks of one nested DAG."""

    waits_for: tuple[str, ...]
    """Image keys built in the main DAG."""
    builds: tuple[str, ...]
    """Image keys built in the chunk itself."""
    tasks: tuple[PlannedTask, ...]


class Cut(NamedTuple):
    hoisted: tuple[str, ...]
    """Image keys that are built in the main DAG."""
    chunks: tuple[Chunk, ...]


def families(tasks: Iterable[PlannedTask], apart: frozenset[str] = frozenset()) -> list[list[PlannedTask]]:
    """Tasks that share images, directly or through others, together; by their first task, each in order.

    Images in `apart` do not count.
    """
    found: list[list[PlannedTask]] = []
    place: dict[str, list[PlannedTask]] = {}
    for task in tasks:
        keys = [key for key in task.built if key not in apart]
        joined = list({id(place[key]): place[key] for key in keys if key in place}.values())
        home: list[PlannedTask] = joined[0] if joined else []
        if not joined:
            found.append(home)
        home.append(task)
        for other in joined[1:]:
            home.extend(other)
            found = [family for family in found if family is not other]
            for moved in other:
                place.update((key, home) for key in moved.built if key not in apart)
        place.update((key, home) for key in keys)
    for family in found:
        family.sort(key=lambda task: task.index)
    return sorted(found, key=lambda family: family[0].index)


def cut(tasks: Sequence[PlannedTask], capacity: int = CHUNK_ENTRIES) -> Cut:
    """Cut tasks into chunks of at most `capacity` entries, builds included."""
    hoisted: set[str] = set()
    while added := _too_large(families(tasks, frozenset(hoisted)), hoisted, capacity):
        hoisted |= added
    groups: dict[tuple[str, ...], list[list[PlannedTask]]] = {}
    for family in families(tasks, frozenset(hoisted)):
        waits_for = tuple(sorted(hoisted.intersection(family[0].built)))
        groups.setdefault(waits_for, []).append(family)
    chunks = [
        _chunk(waits_for, members, hoisted)
        for waits_for, group in groups.items()
        for members in _packed(group, hoisted, capacity)
    ]
    order = {key: None for task in tasks for key in task.built if key in hoisted}
    return Cut(tuple(order), tuple(chunks))


def _too_large(found: Iterable[Sequence[PlannedTask]], hoisted: set[str], capacity: int) -> set[str]:
    """Image keys to build in the main DAG because a family is too large, or would wait for different
    builds."""
    added: set[str] = set()
    for family in found:
        uses = Counter(key for task in family for key in task.built if key not in hoisted)
        waits = {frozenset(hoisted.intersection(task.built)) for task in family}
        if len(waits) > 1:
            added |= uses.keys()
        elif len(family) + len(uses) > capacity:
            added.add(uses.most_common(1)[0][0])
    return added


def _packed(
    group: Iterable[Sequence[PlannedTask]], hoisted: set[str], capacity: int
) -> Iterable[list[PlannedTask]]:
    room: list[PlannedTask] = []
    used = 0
    for family in group:
        entries = len(family) + len({key for task in family for key in task.built} - hoisted)
        if room and used + entries > capacity:
            yield room
            room, used = [], 0
        room.extend(family)
        used += entries
    yield room


def _chunk(waits_for: tuple[str, ...], members: Sequence[PlannedTask], hoisted: set[str]) -> Chunk:
    keys = dict.fromkeys(key for task in members for key in task.built if key not in hoisted)
    return Chunk(waits_for, tuple(keys), tuple(members))
