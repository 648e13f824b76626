"""States of images: what counts of several builds, and what a registry adds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from argo_harbor.bundle.images import (
    MISSING,
    ImageState,
    image_states,
    judged,
    ready_record,
    record_image,
)
from argo_harbor.model.build import BuildRecord
from argo_harbor.store import layout
from argo_harbor.store.directory import DirectoryStore
from tests.support.tasks import sha

KEY = sha("image")


def record(*, ok: bool, key: str = KEY, **facts: Any) -> BuildRecord:
    return BuildRecord(image_key=key, ok=ok, reference=f"r/env:{key[:32]}", **facts)


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "store")


def built(store: DirectoryStore, found: BuildRecord, *, at: float) -> None:
    """Record a build as one that ended at that time."""
    record_image(store, found)
    key = layout.image_ready if found.ok else layout.image_failed
    os.utime(store.path(key(found.image_key)), (at, at))


@pytest.mark.parametrize(("ready", "failed", "word"), [(2, 1, "ready"), (1, 2, "failed"), (1, 1, "ready")])
def test_the_later_build_counts(store: DirectoryStore, ready: float, failed: float, word: str) -> None:
    built(store, record(ok=True, digest="sha256:x"), at=ready)
    built(store, record(ok=False, step="RUN false"), at=failed)
    state = image_states(store, [KEY])[KEY]
    assert (state.word, state.record and state.record.ok) == (word, word == "ready")


def test_an_image_that_nobody_built_is_missing(store: DirectoryStore) -> None:
    assert image_states(store, [KEY]) == {KEY: MISSING}
    assert image_states(store, []) == {}


def test_many_images_are_looked_up_at_once(store: DirectoryStore) -> None:
    keys = [sha(str(number)) for number in range(20)]
    for number, key in enumerate(keys[:15]):
        record_image(store, record(ok=number % 2 == 0, key=key))
    words = [state.word for state in image_states(store, keys).values()]
    assert words == [*(["ready", "failed"] * 7), "ready", *["missing"] * 5]


def test_builds_on_another_base_say_nothing(store: DirectoryStore) -> None:
    built(store, record(ok=True, base="image"), at=1)
    built(store, record(ok=False, base="preview"), at=2)
    words = [image_states(store, [KEY], base=base)[KEY].word for base in ("image", "preview", "", None)]
    assert words == ["ready", "failed", "missing", "failed"]


def test_records_that_cannot_be_read_say_nothing(store: DirectoryStore) -> None:
    built(store, record(ok=False, step="RUN false"), at=1)
    store.put(layout.image_ready(KEY), b"{}")
    assert image_states(store, [KEY])[KEY].word == "failed"
    assert ready_record(store, KEY) is None


READY = ImageState("ready", record(ok=True))
FAILED = ImageState("failed", record(ok=False))


@pytest.mark.parametrize(
    ("stored", "there", "state"),
    [
        (READY, True, READY),
        (FAILED, True, ImageState("ready")),
        (MISSING, True, ImageState("ready")),
        (READY, False, MISSING),
        (FAILED, False, FAILED),
        (MISSING, False, MISSING),
        (READY, None, READY),
        (FAILED, None, FAILED),
    ],
)
def test_a_registry_that_answers_knows_better(
    stored: ImageState, there: bool | None, state: ImageState
) -> None:
    assert judged(stored, there) == state
