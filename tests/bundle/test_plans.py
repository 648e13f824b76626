"""Finding and reading a run's plan, also where the store has been damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from argo_harbor.bundle.plans import find_plan, read_head, read_part
from argo_harbor.errors import PlatformError, UsageError
from argo_harbor.model.base import canonical_json, sha256_hex
from argo_harbor.store import layout
from tests.support.records import Run, digest_of, make_run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return make_run(tmp_path, 2)


@pytest.mark.parametrize("request_data", [b"[]", b"no json", canonical_json({"plan_digest": "../../etc"})])
def test_a_try_names_the_plan_where_the_request_does_not(run: Run, request_data: bytes) -> None:
    run.store.put(layout.request(run.run_id), request_data)
    run.store.put(run.folder(0, 0, 0, "0" * 8) + layout.STARTED, b"no json")
    uid = run.start(0)
    forged = run.record_data(0, uid=uid)["ref"] | {"plan": "../../etc/passwd"}
    started = {
        "schema_version": "started-1",
        "ref": forged,
        "started_at": "x",
        "node": "",
        "workflow_uid": "",
    }
    run.store.put(run.folder(0, 0, 0, "00000000") + layout.STARTED, canonical_json(started))
    assert find_plan(run.run_id, run.store) == run.plan


def test_no_run(run: Run) -> None:
    with pytest.raises(UsageError) as caught:
        find_plan(run.run_id, run.store)
    assert caught.value.code == "unknown_run"


def unreadable(read: Callable[[], object], words: str) -> None:
    with pytest.raises(PlatformError, match=words) as caught:
        read()
    assert caught.value.code == "plan_unreadable"


def test_heads_that_cannot_be_read(run: Run) -> None:
    assert read_head(run.plan, run.store).content_digest() == run.plan
    unreadable(lambda: read_head(digest_of("none"), run.store), "is not in")
    newer = canonical_json({"schema_version": "plan-2"})
    run.store.put(layout.plan_head(sha256_hex(newer)), newer)
    unreadable(lambda: read_head(sha256_hex(newer), run.store), "no plan-1 document")
    run.store.put(layout.plan_head(run.plan), b"{}")
    unreadable(lambda: read_head(run.plan, run.store), "not what its digest says")


def test_parts_that_cannot_be_read(run: Run) -> None:
    assert read_part(run.head, run.plan, 1, run.store).index == 1
    with pytest.raises(KeyError):
        read_part(run.head, run.plan, 7, run.store)
    key = layout.plan_task(run.plan, 0)
    run.store.put(key, b"{}")
    unreadable(lambda: read_part(run.head, run.plan, 0, run.store), "not what its digest says")
    run.store.delete(key)
    unreadable(lambda: read_part(run.head, run.plan, 0, run.store), "is not in")
    entry = run.head.tasks[0].model_copy(update={"part": sha256_hex(b"{}")})
    head = run.head.model_copy(update={"tasks": (entry,)})
    run.store.put(key, b"{}")
    unreadable(lambda: read_part(head, run.plan, 0, run.store), "no task-1 document")
