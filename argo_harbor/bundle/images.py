"""Where the images of tasks stand: what builds left of each image, in whatever run or workflow they were.

Every build that ends writes here, on both engines. `runs submit`, `tasksets build-images` and `tasksets show`
ask. In a cluster the registry knows better where it can be asked: an image may be gone, or be there although
nothing was recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal, NamedTuple

from pydantic import ValidationError

from argo_harbor.model.build import BuildRecord
from argo_harbor.store import layout
from argo_harbor.store.base import Entry, KeyNotFound, Store
from argo_harbor.store.parallel import in_order
from argo_harbor.store.wanted import list_wanted

Word = Literal["ready", "failed", "missing"]


class ImageState(NamedTuple):
    """`missing`: nobody has built it, or what was built is gone."""

    word: Word
    record: BuildRecord | None = None
    """Of the build that says so."""


MISSING = ImageState("missing")


def record_image(store: Store, record: BuildRecord) -> None:
    """Write what came of a build. Raises: PlatformError `store_write_failed`."""
    key = layout.image_ready if record.ok else layout.image_failed
    store.put(key(record.image_key), record.canonical())


def image_states(store: Store, keys: Collection[str], *, base: str | None = "") -> dict[str, ImageState]:
    """What the store knows of each of these images.

    The later of two builds counts; at the same time the one that was ready, since a build looks whether the
    image is there before it can fail. Builds on another `base` than the named say nothing (see
    `BuildRecord.base`); with None all count.

    Raises: PlatformError.
    """
    wanted = list(dict.fromkeys(keys))
    found: dict[str, list[Entry]] = {key: [] for key in wanted}
    folders = [f"{layout.images()}{key}/" for key in wanted]
    for entry in list_wanted(store, folders, folder=layout.images()):
        key = entry.key.split("/")[1]
        if key in found:
            found[key].append(entry)
    told = in_order(lambda key: _latest(store, found[key], base), wanted, threads=store.parallel)
    return dict(zip(wanted, told, strict=True))


def judged(stored: ImageState, there: bool | None) -> ImageState:
    """The state of an image of which a registry says whether it is there, or nothing (None)."""
    if there is None:
        return stored
    if there:
        return stored if stored.word == "ready" else ImageState("ready")
    return stored if stored.word == "failed" else MISSING


def ready_record(store: Store, key: str) -> BuildRecord | None:
    """Record of the last build that made that image, or found it."""
    return _read(store, layout.image_ready(key))


def _latest(store: Store, entries: Iterable[Entry], base: str | None) -> ImageState:
    for entry in sorted(entries, key=_age, reverse=True):
        record = _read(store, entry.key)
        if record is not None and base in (None, record.base):
            return ImageState("ready" if record.ok else "failed", record)
    return MISSING


def _age(entry: Entry) -> tuple[float, bool]:
    return entry.modified, entry.key.endswith("ready.json")


def _read(store: Store, key: str) -> BuildRecord | None:
    try:
        return BuildRecord.from_json(store.get(key))
    except (KeyNotFound, ValidationError):
        return None
