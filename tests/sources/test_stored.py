"""A published taskset comes back as it was, from the store alone."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argo_harbor.errors import PlatformError, Refused, UsageError
from argo_harbor.model.taskset import StoredTaskset, Taskset, TasksetMember
from argo_harbor.sources import load_taskset
from argo_harbor.sources.archive import write_archive
from argo_harbor.sources.directory import taskset_digest
from argo_harbor.sources.fetch import fetch_task
from argo_harbor.sources.manifest import check_manifest, publish_manifest
from argo_harbor.sources.publish import publish_taskset
from argo_harbor.sources.selection import select
from argo_harbor.sources.stored import StoredSource, load_stored
from argo_harbor.store import layout
from argo_harbor.store.directory import DirectoryStore
from tests.sources.conftest import WriteTask
from tests.support.suites import make_suite


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "store")


def publish(taskset: Taskset, store: DirectoryStore, tmp_path: Path) -> None:
    publish_manifest(taskset, store)
    for task in taskset:
        with (tmp_path / "archive").open("wb") as out:
            write_archive(task, out)
        store.put_file(layout.task_archive(task.digest), tmp_path / "archive")


@pytest.fixture
def suite(tmp_path: Path, store: DirectoryStore) -> Taskset:
    taskset = load_taskset(make_suite(tmp_path / "suite", tasks=4, separate_every=2, steps_every=4))
    publish(taskset, store, tmp_path)
    return taskset


def test_it_comes_back_as_it_was_read(suite: Taskset, store: DirectoryStore) -> None:
    for ref in (suite.ref, f"{suite.name}#{suite.digest[:12]}"):
        assert load_stored(ref, store) == suite


def test_a_selection_keeps_its_indexes_and_reads_only_what_it_needs(
    suite: Taskset, store: DirectoryStore
) -> None:
    store.delete(layout.task_archive(suite.tasks[0].digest))
    chosen = load_stored(suite.ref, store, tasks="task-0002,3")
    assert [task.index for task in chosen] == [2, 3]
    assert chosen.total == 4
    with pytest.raises(Refused) as caught:
        load_stored(suite.ref, store)
    assert [item.task for item in caught.value.items] == ["acme/task-0000"]


def test_of_a_suite_published_in_part_that_part_is_taken(tmp_path: Path, store: DirectoryStore) -> None:
    whole = load_taskset(make_suite(tmp_path / "suite", tasks=5))
    publish_taskset(select(whole, "1,3"), store)
    some = load_stored(whole.ref, store)
    assert [task.index for task in some] == [1, 3]
    assert (some.total, some.members) == (5, whole.members)
    assert [warning.code for warning in some.warnings] == ["tasks_not_published"]
    assert "3 of 5 tasks" in some.warnings[0].message
    listed = StoredSource(whole.ref, store).list()
    assert ([index for index, _ in listed.tasks], listed.total) == ([1, 3], 5)
    with pytest.raises(Refused, match="is not in the store"):
        load_stored(whole.ref, store, tasks="0")

    publish_taskset(select(whole, "3,4"), store)
    assert [task.index for task in load_stored(whole.ref, store)] == [1, 3, 4]
    # Somebody's note may have been overwritten by another's: what is there counts as well.
    with (tmp_path / "archive").open("wb") as out:
        write_archive(whole.tasks[0], out)
    store.put_file(layout.task_archive(whole.tasks[0].digest), tmp_path / "archive")
    assert [task.index for task in load_stored(whole.ref, store)] == [0, 1, 3, 4]
    # What was published and is gone is missed, not left out.
    store.delete(layout.task_archive(whole.tasks[3].digest))
    with pytest.raises(Refused, match="is not in the store"):
        load_stored(whole.ref, store)

    publish_taskset(whole, store)
    complete = load_stored(whole.ref, store)
    assert (len(complete), complete.warnings) == (5, ())
    publish_taskset(select(whole, "0"), store)
    assert len(load_stored(whole.ref, store)) == 5


def test_the_same_tasks_in_other_folders_leave_the_manifest_alone(
    suite: Taskset, store: DirectoryStore
) -> None:
    key = layout.taskset(suite.name, suite.digest)
    first = store.get(key)
    moved = tuple(
        TasksetMember(name=member.name, folder=f"other-{member.folder}", digest=member.digest)
        for member in suite.members
    )
    assert not publish_manifest(replace(suite, members=moved), store)
    assert store.get(key) == first


@pytest.mark.parametrize("published", [(), (1, 0), (0, 0), (-1,), (0, 9)])
def test_a_manifest_notes_only_indexes_of_its_own(suite: Taskset, published: tuple[int, ...]) -> None:
    manifest = StoredTaskset(name=suite.name, digest=suite.digest, members=suite.members, published=published)
    key = layout.taskset(suite.name, suite.digest)
    assert check_manifest(key, manifest.canonical()) is None


def test_files_that_an_ignore_file_let_in_stay_in(
    write_task: WriteTask, store: DirectoryStore, tmp_path: Path
) -> None:
    root = write_task(files={".gitignore": "*.log\n", "tests/kept.pyc": "x", "tests/x.log": "x"})
    taskset = load_taskset(root)
    publish(taskset, store, tmp_path)
    assert load_stored(taskset.ref, store).tasks == taskset.tasks


@pytest.mark.parametrize(
    "ref",
    [
        "suite",
        "suite#123",
        f"other#{'0' * 64}",
        f"suite#{'0' * 12}",
        "Suite#" + "0" * 64,
        "../suite#" + "0" * 64,
        "..#" + "0" * 64,
        ".#" + "0" * 64,
        "#" + "0" * 64,
        "suite#" + "0" * 65,
        "suite#" + "0" * 63 + "\n",
    ],
)
def test_refs_that_name_nothing_are_usage_errors(suite: Taskset, store: DirectoryStore, ref: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_stored(ref, store)
    assert caught.value.code == "unknown_flag_value"
    assert caught.value.hint


def test_a_prefix_of_two_digests_is_not_guessed(suite: Taskset, store: DirectoryStore) -> None:
    key = layout.taskset(suite.name, suite.digest[:-1] + ("0" if suite.digest[-1] != "0" else "1"))
    store.put(key, b"{}")
    with pytest.raises(UsageError, match="2 tasksets"):
        load_stored(f"{suite.name}#{suite.digest[:20]}", store)


@pytest.mark.parametrize("change", ["broken", "renamed", "other member", "newer", "reordered", "twice"])
def test_a_manifest_that_is_not_what_its_digest_says_is_refused(
    suite: Taskset, store: DirectoryStore, change: str
) -> None:
    key = layout.taskset(suite.name, suite.digest)
    data = json.loads(store.get(key))
    if change == "renamed":
        data["name"] = "other"
    elif change == "other member":
        data["members"][0]["digest"] = "0" * 64
    elif change == "reordered":
        # The digest is the same, but indexes would name other tasks.
        data["members"].reverse()
    elif change == "twice":
        data["members"].append(data["members"][-1])
    elif change == "newer":
        data["schema_version"] = "taskset-2"
    store.put(key, b"{" if change == "broken" else json.dumps(data).encode())
    with pytest.raises(PlatformError) as caught:
        load_stored(suite.ref, store)
    assert caught.value.code == "plan_unreadable"


def test_an_archive_of_other_content_is_refused(
    suite: Taskset, store: DirectoryStore, tmp_path: Path
) -> None:
    first, second = suite.tasks[:2]
    store.put(layout.task_archive(first.digest), store.get(layout.task_archive(second.digest)))
    with pytest.raises(Refused, match="the archive holds content"):
        load_stored(suite.ref, store)
    store.delete(layout.task_archive(first.digest))
    with pytest.raises(PlatformError, match="is not in"):
        fetch_task(store, first.digest, tmp_path / "out")


def test_an_archive_under_another_tasks_name_is_refused(suite: Taskset, store: DirectoryStore) -> None:
    """Somebody made a taskset of true archives under false names; the digest fits."""
    first, second, *rest = suite.members
    members = (
        first.model_copy(update={"digest": second.digest}),
        second.model_copy(update={"digest": first.digest}),
        *rest,
    )
    forged = StoredTaskset(name=suite.name, digest=taskset_digest(members), members=members)
    store.put(layout.taskset(forged.name, forged.digest), forged.canonical())
    with pytest.raises(Refused) as caught:
        load_stored(forged.ref, store)
    assert [(item.task, "acme/task-000" in item.message) for item in caught.value.items] == [
        (first.name, True),
        (second.name, True),
    ]


def test_every_damaged_archive_is_named(suite: Taskset, store: DirectoryStore) -> None:
    for task in suite.tasks[1:3]:
        store.put(layout.task_archive(task.digest), b"damaged")
    with pytest.raises(Refused) as caught:
        load_stored(suite.ref, store)
    assert [item.task for item in caught.value.items] == ["acme/task-0001", "acme/task-0002"]
    assert load_stored(suite.ref, store, tasks="0,3").tasks == (suite.tasks[0], suite.tasks[3])


def test_listing_reads_the_manifest_alone(suite: Taskset, store: DirectoryStore) -> None:
    for task in suite:
        store.delete(layout.task_archive(task.digest))
    listing = StoredSource(suite.ref, store).list("1,task-0003")
    assert [index for index, _ in listing.tasks] == [1, 3]
    assert (listing.ref, listing.total) == (suite.ref, 4)


def test_a_disk_that_is_full_is_no_fault_of_the_archive(
    suite: Taskset, store: DirectoryStore, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PlatformError, match="cannot unpack") as caught:
        fetch_task(store, suite.tasks[0].digest, tmp_path / "file" / "task")
    assert caught.value.code == "store_unreadable"


def test_publishing_twice_writes_once(suite: Taskset, store: DirectoryStore) -> None:
    before = [(entry.key, entry.modified) for entry in store.list("tasksets/")]
    publish_manifest(suite, store)
    assert [(entry.key, entry.modified) for entry in store.list("tasksets/")] == before


def _whole() -> tuple[str, bytes]:
    members = tuple(
        TasksetMember(name=f"acme/{letter}", folder=letter, digest=sha256(letter.encode()).hexdigest())
        for letter in "abc"
    )
    manifest = StoredTaskset(name="suite", digest=taskset_digest(members), members=members)
    return layout.taskset(manifest.name, manifest.digest), manifest.canonical()


KEY, WHOLE = _whole()


@given(
    changes=st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.binary(max_size=3)), min_size=1, max_size=3)
)
@settings(max_examples=300, deadline=None)
def test_a_damaged_manifest_never_names_other_tasks(changes: list[tuple[int, bytes]]) -> None:
    data = WHOLE
    for at, new in changes:
        data = data[:at] + new + data[at + 1 :]
    found = check_manifest(KEY, data)
    whole = check_manifest(KEY, WHOLE)
    assert whole is not None
    assert found is None or [(each.name, each.digest) for each in found.members] == [
        (each.name, each.digest) for each in whole.members
    ]


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"null", b'{"members": 1}', b"\xff", WHOLE.replace(b"acme/a", b"\\ud800"), b"[" * 100_000],
    ids=["empty", "list", "null", "short", "no UTF-8", "half a character", "deep"],
)
def test_what_is_no_manifest_is_none(data: bytes) -> None:
    assert check_manifest(KEY, data) is None
