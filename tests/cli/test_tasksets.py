"""`argo-harbor tasksets …`: publish a suite, and see what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from argo_harbor.cli.published import published_lines
from argo_harbor.sources.publish import PublishedTask, PublishedTaskset
from argo_harbor.sources.read import load_taskset
from argo_harbor.store import layout
from argo_harbor.store.directory import DirectoryStore
from tests.cli.conftest import Command
from tests.engines.argo_bench import install
from tests.support.api_server import ApiServer
from tests.support.fixtures_hub import NAME, HubSite
from tests.support.git_repos import Repository
from tests.support.s3server import S3Server
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


@pytest.mark.services
def test_a_clusters_store_is_one_for_all(
    argo_harbor: Command,
    api: ApiServer,
    s3_server: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(api, platform=f'bucket = "{s3_server.bucket}"\nprefix = "{tmp_path.name}"')
    monkeypatch.setenv("ARGO_HARBOR_STORE_ENDPOINT", s3_server.endpoint)
    monkeypatch.setenv("ARGO_HARBOR_STORE_ACCESS_KEY", s3_server.access_key)
    monkeypatch.setenv("ARGO_HARBOR_STORE_SECRET_KEY", s3_server.secret_key)
    suite = make_suite(tmp_path / "suite", tasks=3)
    first = argo_harbor("tasksets", "create", "--harbor-dir", suite, "--engine", "argo")
    assert (first.status, first.stdout.count("Published")) == (0, 4)
    ref = first.stdout.splitlines()[-1]
    assert f"{s3_server.endpoint}/{s3_server.bucket}" in first.stderr
    again = argo_harbor("tasksets", "create", "--harbor-dir", suite, "--engine", "argo")
    assert again.stdout.count("Unchanged") == 4
    (line,) = argo_harbor("tasksets", "list", "--json").json("tasksets-document-1")["tasksets"]
    assert (line["taskset_ref"], line["in_store"]) == (ref, 3)
    shown = argo_harbor("tasksets", "show", ref[:20], "--engine", "argo")
    assert f"argo-harbor runs submit --taskset '{ref}' --engine argo" in shown.stdout
    monkeypatch.setenv("ARGO_HARBOR_STORE_SECRET_KEY", "wrong")
    refused = argo_harbor("tasksets", "create", "--harbor-dir", suite, "--json")
    assert (refused.status, refused.error["code"]) == (5, "store_unreadable")


def test_a_task_that_changed_ends_the_command_with_every_file(
    argo_harbor: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = make_suite(tmp_path / "suite", tasks=3)
    taskset = load_taskset(suite)
    for task in taskset.tasks[1:]:
        (suite / task.folder / "README.md").write_text("edited")
    monkeypatch.setattr("argo_harbor.sources.directory.read_directory", lambda path: taskset)
    done = argo_harbor("tasksets", "create", "--harbor-dir", suite, "--json")
    assert (done.status, done.error["code"]) == (3, "source_changed")
    assert [(item["task"], item["file"]) for item in done.error["items"]] == [
        ("acme/task-0001", "README.md"),
        ("acme/task-0002", "README.md"),
    ]


def test_verify_repairs_what_somebody_damaged(argo_harbor: Command, tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", tasks=2)
    taskset = load_taskset(suite)
    argo_harbor("tasksets", "create", "--harbor-dir", suite)
    store = DirectoryStore(tmp_path / "store" / "local")
    store.put(layout.task_archive(taskset.tasks[0].digest), b"x" * 100)
    create = ("tasksets", "create", "--harbor-dir", suite)
    assert argo_harbor(*create).stdout.count("Unchanged") == 3
    verified = argo_harbor(*create, "--verify").stdout.splitlines()
    assert [line.partition(" ")[0] for line in verified[:-1]] == ["Published", "Unchanged", "Published"]
    assert argo_harbor(*create, "--verify").stdout.count("Unchanged") == 3


def test_names_cannot_command_a_terminal(argo_harbor: Command, tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store" / "local")
    store.put("tasksets/\x1b[2J/\x1b[1m.json", b"{}")
    listed = argo_harbor("tasksets", "list")
    assert "\x1b" not in listed.stdout + listed.stderr


def test_a_large_suite_is_summed_up_where_a_run_is_submitted() -> None:
    tasks = tuple(PublishedTask(index, f"t{index}", "0" * 64, index < 2) for index in range(51))
    digest = "1" * 64
    assert list(published_lines(PublishedTaskset(f"suite#{digest}", tasks, 60, True))) == [
        "Published 2 of 51 tasks, 49 unchanged",
        f"Published taskset suite#{digest[:12]} (51 of 60 tasks)",
    ]
    assert len(list(published_lines(PublishedTaskset(f"suite#{digest}", tasks[:50], 60, True)))) == 51


def test_a_git_source_has_a_label_and_is_kept(argo_harbor: Command, repository: Repository) -> None:
    commit = repository.git("rev-parse", "HEAD")
    pinned = f"{repository.path}@{commit}"
    done = argo_harbor("tasksets", "create", "--harbor-git", f"{repository.path}@main", "--tasks", "0,2")
    assert done.status == 0, done.stderr
    *_, taskset, label, ref = done.stdout.splitlines()
    assert taskset == f"Published taskset {ref[: ref.index('#') + 13]} (2 of 3 tasks)"
    assert label.startswith("Intake label: --intake-dataset ")
    assert label.endswith(f"@{commit}")
    dataset = label.rpartition(" ")[2]
    document = argo_harbor("tasksets", "create", "--harbor-git", pinned, "--tasks", "0,2", "--json").json(
        "taskset-create-document-1"
    )
    kept = f"Suite_A@{commit}"
    assert (document["source"], document["intake_dataset"], document["taskset_ref"]) == (kept, dataset, ref)
    assert document["state"] == "unchanged"
    shown = argo_harbor("tasksets", "show", ref)
    assert f"Source: {kept}\n" in shown.stdout
    assert f"--intake-dataset {dataset}" in shown.stdout
    assert kept in argo_harbor("tasksets", "list").stdout


@pytest.mark.filterwarnings("ignore:The '.*' parameter is deprecated:DeprecationWarning")
def test_a_dataset_of_the_hub_has_a_label(argo_harbor: Command, hub_site: HubSite) -> None:
    done = argo_harbor("tasksets", "create", "--harbor-hub", NAME)
    assert done.status == 0, done.stderr
    *_, label, ref = done.stdout.splitlines()
    assert label == f"Intake label: --intake-dataset {NAME}@sha256:{hub_site.version.digest}"
    listed = argo_harbor("compile", "--harbor-dir", hub_site.suite, "--list-tasks", "--json")
    there = listed.json("task-list-document-1")["taskset_ref"]
    assert ref.partition("#")[2] == there.partition("#")[2]
