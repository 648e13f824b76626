"""Publishing a taskset, to a folder and to a real S3 server: only what is missing, and only what is right."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from argo_harbor.errors import PlatformError, Refused
from argo_harbor.model.taskset import Origin, Taskset
from argo_harbor.sources import member
from argo_harbor.sources.fetch import fetch_task
from argo_harbor.sources.manifest import read_manifest
from argo_harbor.sources.publish import PublishedTask, publish_taskset
from argo_harbor.sources.read import load_taskset
from argo_harbor.sources.stored import load_stored
from argo_harbor.store import layout
from argo_harbor.store.base import Store
from argo_harbor.store.directory import DirectoryStore
from tests.sources.conftest import WriteTask
from tests.support.stores import Counting
from tests.support.suites import make_suite


def suite(folder: Path, tasks: int = 3) -> Taskset:
    return load_taskset(make_suite(folder / "suite", tasks=tasks))


def is_published(taskset: Taskset, store: Store) -> bool:
    return store.exists(layout.taskset(taskset.name, taskset.digest))


def test_only_what_is_missing_is_published(store: Store, tmp_path: Path) -> None:
    taskset = suite(tmp_path)
    told: list[PublishedTask] = []
    two = replace(taskset, tasks=taskset.tasks[::2])
    first = publish_taskset(two, store, told=told.append)
    assert told == list(first.tasks)
    assert [(task.index, task.ref, task.new) for task in first.tasks] == [
        (task.index, f"{task.name}#{task.digest}", True) for task in two
    ]
    assert (first.ref, first.total, first.added, first.new) == (taskset.ref, 3, 2, True)
    second = publish_taskset(taskset, store)
    assert [task.new for task in second.tasks] == [False, True, False]
    assert (second.added, second.new) == (1, True)
    third = publish_taskset(taskset, store)
    assert (third.added, third.new) == (0, False)
    assert load_stored(taskset.ref, store) == taskset


def test_the_manifest_is_written_last_and_looking_costs_one_listing(store: Store, tmp_path: Path) -> None:
    taskset = suite(tmp_path, tasks=30)
    counting = Counting(store)
    publish_taskset(taskset, counting)
    assert counting.calls == {"list": 1, "put_file": 30, "get": 1, "put": 1}
    assert counting.written[-1] == layout.taskset(taskset.name, taskset.digest)
    counting.calls.clear()
    publish_taskset(taskset, counting)
    assert counting.calls == {"list": 1, "get": 1}


def test_of_a_large_store_only_the_wanted_archives_are_looked_for(tmp_path: Path) -> None:
    """A listing of all would be a request for each thousand of them."""

    class Server(Counting):
        parallel = 16

    taskset = suite(tmp_path)
    counting = Server(DirectoryStore(tmp_path / "store"))
    publish_taskset(taskset, counting)
    assert counting.calls["list"] == 3


def test_tasks_of_the_same_content_are_one_archive(
    store: Store, write_task: WriteTask, tmp_path: Path
) -> None:
    write_task("one")
    write_task("two")
    taskset = load_taskset(tmp_path / "suite")
    counting = Counting(store)
    published = publish_taskset(taskset, counting)
    assert [task.new for task in published.tasks] == [True, False]
    assert counting.calls["put_file"] == 1
    assert load_stored(taskset.ref, store) == taskset


def test_everything_that_changed_is_named_and_the_rest_is_published(store: Store, tmp_path: Path) -> None:
    taskset = suite(tmp_path, tasks=4)
    roots = [tmp_path / "suite" / task.folder for task in taskset]
    (roots[1] / "README.md").write_text("new")
    (roots[3] / "tests/test.sh").unlink()
    (roots[3] / "instruction.md").write_text("new")
    told: list[PublishedTask] = []
    with pytest.raises(Refused) as caught:
        publish_taskset(taskset, store, told=told.append)
    assert [(item.code, item.task, item.file) for item in caught.value.items] == [
        ("source_changed", "acme/task-0001", "README.md"),
        ("source_changed", "acme/task-0003", "instruction.md"),
        ("source_changed", "acme/task-0003", "tests/test.sh"),
    ]
    assert [task.index for task in told] == [0, 2]
    assert not is_published(taskset, store)
    assert [store.exists(layout.task_archive(task.digest)) for task in taskset] == [True, False, True, False]


def test_a_task_that_changes_during_the_publish_does_not_reach_the_store(
    store: Store, tmp_path: Path
) -> None:
    taskset = suite(tmp_path, tasks=40)
    victim = taskset.tasks[-1]

    class Editing(Counting):
        def put_file(self, key: str, path: Path) -> None:
            (tmp_path / "suite" / victim.folder / "instruction.md").write_text("edited meanwhile")
            super().put_file(key, path)

    with pytest.raises(Refused) as caught:
        publish_taskset(taskset, Editing(store))
    assert [(item.code, item.task) for item in caught.value.items] == [("source_changed", victim.name)]
    assert not store.exists(layout.task_archive(victim.digest))
    assert not is_published(taskset, store)
    edited = load_taskset(tmp_path / "suite")
    published = publish_taskset(edited, store)
    assert published.added == 1
    assert load_stored(edited.ref, store) == edited


def test_a_task_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taskset = suite(tmp_path)
    monkeypatch.setattr("argo_harbor.sources.bounds.MAX_FILES", 6)
    with pytest.raises(Refused) as caught:
        publish_taskset(taskset, DirectoryStore(tmp_path / "store"))
    assert {(item.code, item.message) for item in caught.value.items} == {
        ("invalid_task_config", "has more than 6 files")
    }
    assert len(caught.value.items) == 3


def test_no_room_to_pack_is_said_with_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taskset = suite(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.raises(PlatformError, match="absent") as caught:
        publish_taskset(taskset, DirectoryStore(tmp_path / "store"))
    assert caught.value.code == "store_write_failed"
    assert "TMPDIR" in caught.value.hint


def test_an_empty_archive_counts_as_missing(store: Store, tmp_path: Path) -> None:
    taskset = suite(tmp_path)
    publish_taskset(taskset, store)
    store.put(layout.task_archive(taskset.tasks[1].digest), b"")
    assert [task.new for task in publish_taskset(taskset, store).tasks] == [False, True, False]
    fetch_task(store, taskset.tasks[1].digest, tmp_path / "back")


@pytest.mark.parametrize("damage", ["cut off", "another task"])
def test_damaged_archives_are_found_by_looking_into_them_and_replaced(
    store: Store, tmp_path: Path, damage: str
) -> None:
    taskset = suite(tmp_path)
    publish_taskset(taskset, store)
    key = layout.task_archive(taskset.tasks[1].digest)
    other = store.get(layout.task_archive(taskset.tasks[2].digest))
    store.put(key, store.get(key)[:-9] if damage == "cut off" else other)
    with pytest.raises(Refused, match="acme/task-0001") as caught:
        load_stored(taskset.ref, store)
    assert caught.value.code == "source_unreadable"
    assert "--verify" in caught.value.hint
    assert publish_taskset(taskset, store).added == 0
    assert [task.new for task in publish_taskset(taskset, store, verify=True).tasks] == [False, True, False]
    assert publish_taskset(taskset, store, verify=True).added == 0
    assert load_stored(taskset.ref, store) == taskset


def test_the_remote_source_is_kept_by_who_publishes_the_same_from_a_folder(
    store: Store, tmp_path: Path
) -> None:
    taskset = suite(tmp_path)
    remote = replace(taskset, origin=Origin("https://git.example/a@0123", "git.example/a", "0123"))
    publish_taskset(taskset, store)
    assert read_manifest(taskset.ref, store).dataset_label == f"suite@{taskset.digest}"
    assert publish_taskset(remote, store).new is False
    publish_taskset(taskset, store)
    manifest = read_manifest(taskset.ref, store)
    assert (manifest.source, manifest.dataset_label) == ("https://git.example/a@0123", "git.example/a@0123")
    assert load_stored(taskset.ref, store).origin == remote.origin


def test_a_broken_manifest_is_replaced(store: Store, tmp_path: Path) -> None:
    taskset = suite(tmp_path)
    publish_taskset(taskset, store)
    key = layout.taskset(taskset.name, taskset.digest)
    whole = store.get(key)
    for broken in (b"", whole[:-1], whole.replace(b"task-0001", b"task-0009")):
        store.put(key, broken)
        assert publish_taskset(taskset, store).new
        assert store.get(key) == whole


@pytest.mark.parametrize("root", ["/sys/argo-harbor", "/proc/argo-harbor"])
def test_a_store_that_takes_nothing_is_named(tmp_path: Path, root: str) -> None:
    with pytest.raises(PlatformError) as caught:
        publish_taskset(suite(tmp_path), DirectoryStore(Path(root)))
    assert caught.value.code == "store_write_failed"
    assert root in caught.value.message
    assert "--store" in caught.value.hint


def test_a_file_that_is_gone_after_the_walk_is_a_change(
    write_task: WriteTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_task()
    read_tree = member.read_tree

    def read_and_remove(*arguments: Any, **named: Any) -> Any:
        tree = read_tree(*arguments, **named)
        (root / "tests/test.sh").unlink()
        return tree

    monkeypatch.setattr(member, "read_tree", read_and_remove)
    with pytest.raises(Refused) as caught:
        load_taskset(root)
    assert (caught.value.code, caught.value.items[0].file) == ("source_changed", "tests/test.sh")
