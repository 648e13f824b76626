"""Publishing a plan and its tasks, to a folder and to a real S3 server."""

from __future__ import annotations

from pathlib import Path

import pytest

from argo_harbor import api
from argo_harbor.engines.publish import Published, publish
from argo_harbor.model.spec import RunSpec
from argo_harbor.model.taskset import Taskset
from argo_harbor.planning.plan import plan
from argo_harbor.sources.fetch import fetch_task
from argo_harbor.sources.read import load_taskset
from argo_harbor.store import layout
from argo_harbor.store.base import Store
from argo_harbor.store.directory import DirectoryStore
from argo_harbor.workflow import limits
from argo_harbor.workflow.compile import compile_workflow
from argo_harbor.workflow.emit import to_yaml
from tests.support.stores import Counting
from tests.support.suites import make_suite


def _suite(folder: Path, tasks: int) -> Taskset:
    return load_taskset(make_suite(folder, tasks=tasks))


def _added(published: Published) -> tuple[int, bool]:
    return published.taskset.added, published.plan


def test_only_what_is_missing_is_published_and_it_comes_back_whole(store: Store, tmp_path: Path) -> None:
    taskset = _suite(tmp_path / "suite", tasks=3)
    planned = plan(taskset, RunSpec.for_agent("nop"))
    assert _added(publish(planned, taskset, store)) == (3, True)
    assert _added(publish(planned, taskset, store)) == (0, False)
    store.delete(layout.task_archive(taskset.tasks[1].digest))
    store.delete(layout.plan_task(planned.digest, 2))
    assert _added(publish(planned, taskset, store)) == (1, False)
    assert store.get(layout.plan_task(planned.digest, 2)) == planned.parts[2].canonical()
    for task in taskset.tasks:
        fetch_task(store, task.digest, tmp_path / "back" / task.folder)
        assert (tmp_path / "back" / task.folder / "task.toml").read_bytes() == (
            tmp_path / "suite" / task.folder / "task.toml"
        ).read_bytes()


def test_publishing_again_is_a_handful_of_requests(store: Store, tmp_path: Path) -> None:
    taskset = _suite(tmp_path / "suite", tasks=30)
    planned = plan(taskset, RunSpec.for_agent("nop"))
    counting = Counting(store)
    publish(planned, taskset, counting)
    assert counting.calls.pop("list") <= 2
    assert counting.calls == {"put_file": 30, "put": 32, "get": 1}
    counting.calls.clear()
    assert _added(publish(planned, taskset, counting)) == (0, False)
    assert counting.calls == {"list": 2, "get": 1}


def test_a_head_in_the_store_means_that_its_parts_are_there(store: Store, tmp_path: Path) -> None:
    taskset = _suite(tmp_path / "suite", tasks=12)
    planned = plan(taskset, RunSpec.for_agent("nop"))
    counting = Counting(store)
    publish(planned, taskset, counting)
    assert counting.written[-1] == layout.plan_head(planned.digest)
    assert {key for key in counting.written if key.startswith("plans/")} == {
        layout.plan_head(planned.digest),
        *(layout.plan_task(planned.digest, index) for index in range(12)),
    }


def test_the_parts_of_a_run_too_large_for_one_workflow_are_published(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_WORKFLOW_BYTES", 60_000)
    monkeypatch.setattr("argo_harbor.workflow.split.MAX_WORKFLOW_BYTES", 60_000)
    taskset = _suite(tmp_path / "suite", tasks=40)
    planned = plan(taskset, RunSpec.for_agent("nop"))
    parent, *parts = compile_workflow(planned)
    assert len(parts) > 1
    store.put(layout.plan_part(planned.digest, 0), b"from another version")
    api.publish(planned, store)
    assert [store.get(layout.plan_part(planned.digest, number)).decode() for number in range(len(parts))] == [
        to_yaml(part) for part in parts
    ]
    counting = Counting(store)
    publish(planned, taskset, counting, workflows=[parent, *parts])
    assert counting.written == []


def test_a_task_that_changed_since_it_was_read_is_not_published(tmp_path: Path) -> None:
    taskset = _suite(tmp_path / "suite", tasks=2)
    planned = plan(taskset, RunSpec.for_agent("nop"))
    (tmp_path / "suite" / taskset.tasks[1].folder / "task.toml").write_text("changed")
    store = DirectoryStore(tmp_path / "store")
    with pytest.raises(api.HarborError):
        publish(planned, taskset, store)
    assert not store.exists(layout.plan_head(planned.digest))
