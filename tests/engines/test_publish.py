"""Publishing a plan and its tasks."""

from __future__ import annotations

from pathlib import Path

from argo_harbor.engines.publish import publish
from argo_harbor.model.spec import RunSpec
from argo_harbor.planning.plan import plan
from argo_harbor.sources.fetch import fetch_task
from argo_harbor.sources.read import load_taskset
from argo_harbor.store import layout
from argo_harbor.store.directory import DirectoryStore
from tests.support.suites import make_suite


def test_only_what_is_missing_is_published_and_it_comes_back_whole(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", tasks=3)
    taskset = load_taskset(suite)
    planned = plan(taskset, RunSpec.for_agent("nop"))
    store = DirectoryStore(tmp_path / "store")
    assert publish(planned, taskset, store) == (3, True)
    assert publish(planned, taskset, store) == (0, False)
    store.delete(layout.task_archive(taskset.tasks[1].digest))
    assert publish(planned, taskset, store) == (1, False)
    for task in taskset.tasks:
        fetch_task(store, task.digest, tmp_path / "back" / task.folder)
        assert (tmp_path / "back" / task.folder / "task.toml").read_bytes() == (
            suite / task.folder / "task.toml"
        ).read_bytes()


def test_a_head_in_the_store_means_that_its_parts_are_there(tmp_path: Path) -> None:
    taskset = load_taskset(make_suite(tmp_path / "suite", tasks=2))
    planned = plan(taskset, RunSpec.for_agent("nop"))
    written: list[str] = []

    class Watching(DirectoryStore):
        def put(self, key: str, data: bytes) -> None:
            written.append(key)
            super().put(key, data)

    publish(planned, taskset, Watching(tmp_path / "store"))
    assert [key for key in written if key.startswith("plans/")] == [
        layout.plan_task(planned.digest, 0),
        layout.plan_task(planned.digest, 1),
        layout.plan_head(planned.digest),
    ]
    assert written[-1] == layout.plan_head(planned.digest)
