"""`argo-harbor tasksets …`: publish a suite, and see what is there."""

from __future__ import annotations

from pathlib import Path

from argo_harbor.sources.read import load_taskset
from argo_harbor.store import layout
from argo_harbor.store.directory import DirectoryStore
from tests.cli.conftest import Command
from tests.support.suites import make_suite


def test_create_says_what_it_did_and_ends_with_the_ref(argo_harbor: Command, tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", tasks=3)
    taskset = load_taskset(suite)
    short = [f"{task.name}#{task.digest[:12]}" for task in taskset]
    first = argo_harbor("tasksets", "create", "--harbor-dir", suite, "--tasks", "0,2")
    assert first.status == 0
    assert first.stdout.splitlines() == [
        f"Published task {short[0]}",
        f"Published task {short[2]}",
        f"Published taskset suite#{taskset.digest[:12]} (2 of 3 tasks)",
        taskset.ref,
    ]
    second = argo_harbor("tasksets", "create", "--harbor-dir", suite)
    assert second.stdout.splitlines() == [
        f"Unchanged task {short[0]}",
        f"Published task {short[1]}",
        f"Unchanged task {short[2]}",
        f"Published taskset suite#{taskset.digest[:12]} (3 of 3 tasks)",
        taskset.ref,
    ]
    third = argo_harbor("tasksets", "create", "--harbor-dir", suite)
    assert all(line.startswith("Unchanged") for line in third.stdout.splitlines()[:-1])
    assert third.stdout.splitlines()[-1] == taskset.ref


def test_create_as_a_document(argo_harbor: Command, tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", tasks=2)
    (suite / "notes").mkdir()
    taskset = load_taskset(suite)
    argo_harbor("tasksets", "create", "--harbor-dir", suite, "--tasks", "1")
    document = argo_harbor("tasksets", "create", "--harbor-dir", suite, "--json").json(
        "taskset-create-document-1"
    )
    assert document["taskset_ref"] == taskset.ref
    assert document["intake_dataset"] == f"suite@{taskset.digest}"
    assert [(task["name"], task["state"]) for task in document["tasks"]] == [
        ("acme/task-0000", "published"),
        ("acme/task-0001", "unchanged"),
    ]
    assert (document["published"], document["unchanged"], document["state"]) == (1, 1, "published")
    assert [warning["code"] for warning in document["warnings"]] == ["not_a_task"]


def test_list_tasks_uploads_nothing(argo_harbor: Command, tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", tasks=2)
    done = argo_harbor("tasksets", "create", "--harbor-dir", suite, "--list-tasks")
    assert "acme/task-0001" in done.stdout
    assert not (tmp_path / "store").exists()


def test_a_published_taskset_is_no_source_of_one(argo_harbor: Command, tmp_path: Path) -> None:
    none = argo_harbor("tasksets", "create", "--json")
    assert (none.status, none.error["code"]) == (2, "no_source")
    assert "--taskset" not in none.error["hint"]
    two = argo_harbor("tasksets", "create", "--harbor-dir", "x", "--harbor-git", "y@z", "--json")
    assert two.error["code"] == "two_sources"


def test_list_and_show(argo_harbor: Command, tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", tasks=3)
    taskset = load_taskset(suite)
    assert argo_harbor("tasksets", "list").stdout == ""
    argo_harbor("tasksets", "create", "--harbor-dir", suite, "--tasks", "0,2")
    assert f"suite#{taskset.digest[:12]}      3         2" in argo_harbor("tasksets", "list").stdout
    (line,) = argo_harbor("tasksets", "list", "--json").json("tasksets-document-1")["tasksets"]
    assert (line["taskset_ref"], line["total"], line["in_store"]) == (taskset.ref, 3, 2)
    ref = f"suite#{taskset.digest[:12]}"
    shown = argo_harbor("tasksets", "show", ref)
    assert "2 of 3 tasks in the store" in shown.stdout
    assert f"--intake-dataset suite@{taskset.digest}" in shown.stdout
    document = argo_harbor("tasksets", "show", ref, "--json").json("taskset-document-1")
    assert [task["in_store"] for task in document["tasks"]] == [True, False, True]
    assert [bool(task["bytes"]) for task in document["tasks"]] == [True, False, True]


def test_a_broken_manifest_is_shown_with_its_cure(argo_harbor: Command, tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", tasks=2)
    taskset = load_taskset(suite)
    argo_harbor("tasksets", "create", "--harbor-dir", suite)
    store = DirectoryStore(tmp_path / "store" / "local")
    store.put(layout.taskset(taskset.name, taskset.digest), b"{")
    store.put("tasksets/odd", b"")
    listed = argo_harbor("tasksets", "list")
    assert "broken" in listed.stdout
    assert "hint: argo-harbor tasksets create" in listed.stderr
    lines = argo_harbor("tasksets", "list", "--json").json("tasksets-document-1")["tasksets"]
    assert {line["name"]: (line["total"], bool(line["problem"])) for line in lines} == {
        "suite": (None, True),
        "tasksets/odd": (None, True),
    }
    shown = argo_harbor("tasksets", "show", taskset.ref, "--json")
    assert (shown.status, shown.error["code"]) == (5, "plan_unreadable")
    again = argo_harbor("tasksets", "create", "--harbor-dir", suite)
    assert "Published taskset" in again.stdout
    assert argo_harbor("tasksets", "show", taskset.ref).status == 0
