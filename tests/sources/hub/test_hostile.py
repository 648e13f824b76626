"""What a Hub may send that is not what was published: nothing of it may be used, or written elsewhere."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from argo_harbor.errors import PlatformError, Refused, UsageError
from argo_harbor.sources.hub import client as hub_client
from tests.support.fixtures_hub import NAME, HubSite
from tests.support.suites import make_suite

if TYPE_CHECKING:
    from tests.support.hub_server import DatasetVersion

pytestmark = [
    pytest.mark.remote,
    pytest.mark.filterwarnings("ignore:The '.*' parameter is deprecated:DeprecationWarning"),
]


def rehash(version: DatasetVersion) -> None:
    """Let the digest of a dataset agree with what its rows now say."""
    from argo_harbor.sources.hub.dataset import HubTask, dataset_digest

    tasks = [HubTask(task.name, task.digest) for task in version.tasks]
    version.digest = dataset_digest(tasks, [(row["path"], row["content_hash"]) for row in version.files])


def with_entry(archive: bytes, *entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(archive)) as old, tarfile.open(fileobj=out, mode="w:gz") as new:
        for info, data in entries:
            info.size = len(data)
            new.addfile(info, io.BytesIO(data))
        for info in old:
            new.addfile(info, old.extractfile(info))
    return out.getvalue()


def entry(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


ATTACKS: dict[str, Callable[[bytes], bytes]] = {
    "traversal": lambda good: with_entry(good, (entry("../../../evil"), b"x")),
    "absolute path": lambda good: with_entry(good, (entry("/tmp/evil"), b"x")),
    "absolute link": lambda good: with_entry(good, (entry("tests/l", tarfile.SYMTYPE, "/etc/passwd"), b"")),
    "link outwards": lambda good: with_entry(good, (entry("l", tarfile.SYMTYPE, "../../.."), b"")),
    "hard link": lambda good: with_entry(good, (entry("tests/l", tarfile.LNKTYPE, "task.toml"), b"")),
    "device": lambda good: with_entry(good, (entry("tests/d", tarfile.CHRTYPE), b"")),
    "pipe": lambda good: with_entry(good, (entry("tests/p", tarfile.FIFOTYPE), b"")),
    "one file more": lambda good: with_entry(good, (entry("tests/evil.sh"), b"x")),
    "one file twice": lambda good: with_entry(good, (entry("task.toml"), b"x")),
    "truncated": lambda good: good[: len(good) // 2],
    "empty": lambda good: b"",
    "no archive": lambda good: b"<html>not found</html>",
    "no tar": lambda good: gzip.compress(b"x" * 1024),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_archive_that_is_not_the_tasks_is_refused(hub_site: HubSite, attack: str) -> None:
    tasks = hub_site.version.tasks
    bad = tasks[1]
    hub_site.hub.objects[bad.archive] = ATTACKS[attack](hub_site.hub.objects[bad.archive])
    problem = hub_site.fails()
    assert isinstance(problem, Refused)
    assert (problem.code, problem.items[0].task) == ("source_unreadable", bad.name)
    assert problem.message.isprintable()
    written = {path for path in hub_site.home.rglob("*") if path.is_file()}
    good = {hub_site.cache / task.name / task.digest for task in tasks if task is not bad}
    assert all(any(path.is_relative_to(folder) for folder in good) for path in written)
    assert not (hub_site.cache / bad.name / bad.digest).exists()
    assert not Path("/tmp/evil").exists()


def test_entries_for_folders_are_no_content(hub_site: HubSite) -> None:
    task = hub_site.version.tasks[1]
    objects = hub_site.hub.objects
    objects[task.archive] = with_entry(objects[task.archive], (entry("./tests", tarfile.DIRTYPE), b""))
    assert hub_site.source().load("1").tasks[0].digest == task.digest


def test_every_task_with_the_wrong_content_is_named_with_both_digests(hub_site: HubSite) -> None:
    first, second, third = hub_site.version.tasks
    objects = hub_site.hub.objects
    objects[first.archive], objects[second.archive] = objects[third.archive], objects[third.archive]
    problem = hub_site.fails()
    assert [item.task for item in problem.items] == [first.name, second.name]
    for item, task in zip(problem.items, (first, second), strict=True):
        assert third.digest[:12] in item.message
        assert task.digest[:12] in item.message


def test_two_tasks_in_each_others_place_are_refused_although_every_digest_agrees(hub_site: HubSite) -> None:
    first, second, _ = hub_site.version.tasks
    first.name, second.name = second.name, first.name
    problem = hub_site.fails()
    assert (problem.code, len(problem.items)) == ("source_unreadable", 2)
    assert "calls itself 'acme/task-0000'" in problem.items[1].message


def test_two_names_for_one_task_are_refused(hub_site: HubSite) -> None:
    first, second, _ = hub_site.version.tasks
    second.digest, second.archive = first.digest, first.archive
    rehash(hub_site.version)
    problem = hub_site.fails()
    assert [(item.task, item.key) for item in problem.items] == [(second.name, "task.name")]
    assert len(hub_site.load(tasks=[0, 2])) == 2


def test_a_dataset_whose_digest_is_not_that_of_its_tasks_is_refused(hub_site: HubSite) -> None:
    left_out = hub_site.version.tasks.pop()
    problem = hub_site.fails()
    assert (problem.code, type(problem)) == ("source_unreadable", Refused)
    assert hub_site.version.digest in problem.message
    assert hub_site.hub.downloads() == []
    hub_site.version.tasks.append(left_out)
    assert len(hub_site.load(tasks="0")) == 1


def test_another_version_than_the_pinned_one_is_refused(hub_site: HubSite) -> None:
    from tests.support.hub_server import Fault

    pinned = hub_site.version.digest
    other = hub_site.hub.publish(NAME, *hub_site.folders[:1])
    answer = json.dumps([{**other.row(), "package": {}}]).encode()
    hub_site.hub.faults.append(Fault("content_hash=eq.", status=200, body=answer))
    problem = hub_site.fails(f"{NAME}@sha256:{pinned}")
    assert problem.code == "source_unreadable"
    assert other.digest in problem.message
    assert pinned in problem.message


@pytest.mark.parametrize("name", ["../evil/x", "acme/..", "acme", "acme/x\x1b[2J"])
def test_a_name_that_would_be_a_path_is_refused_unshown(hub_site: HubSite, name: str) -> None:
    hub_site.version.tasks[0].name = name
    problem = hub_site.fails()
    assert (problem.code, type(problem)) == ("source_unreadable", Refused)
    assert problem.message.isprintable()
    assert hub_site.hub.downloads() == []


def test_digests_that_are_none_are_refused(hub_site: HubSite) -> None:
    hub_site.version.tasks[0].digest = "../../x"
    hub_site.version.digest = "sha256:zz"
    hub_site.version.files.append({"path": "notes.md", "storage_path": "", "content_hash": "?"})
    problem = hub_site.fails()
    assert len(problem.items) == 3
    assert {item.code for item in problem.items} == {"source_unreadable"}


def test_a_metric_script_is_refused_and_other_files_are_left_alone(hub_site: HubSite) -> None:
    with_notes = hub_site.hub.publish("acme/notes", *hub_site.folders, files={"notes.md": b"hello"})
    assert hub_site.load("acme/notes").origin.version == f"sha256:{with_notes.digest}"  # type: ignore[union-attr]
    hub_site.hub.publish("acme/scored", *hub_site.folders, files={"metric.py": b"print(1)"})
    hub_site.hub.asked.clear()
    problem = hub_site.fails("acme/scored")
    assert (problem.code, problem.items[0].file) == ("metric_script_unsupported", "metric.py")
    assert hub_site.hub.downloads() == []


def test_tasks_that_this_account_cannot_see_are_counted(hub_site: HubSite) -> None:
    for task in hub_site.version.tasks[:2]:
        task.hidden = True
    with pytest.raises(Refused, match="2 of 3 tasks of acme/mini@latest cannot be seen") as caught:
        hub_site.source().list()
    assert "harbor auth login" in caught.value.hint


def test_a_task_in_two_versions_is_refused(hub_site: HubSite) -> None:
    other = make_suite(hub_site.home / "other", tasks=1, seed=7) / "task-0000"
    (other / "README.md").write_text("another\n")
    hub_site.version.tasks.append(hub_site.hub.publish_task(other))
    rehash(hub_site.version)
    problem = hub_site.fails()
    assert (problem.code, problem.items[0].task) == ("invalid_task_config", "acme/task-0000")


def test_a_dataset_without_tasks_is_none_to_run(hub_site: HubSite) -> None:
    hub_site.hub.publish("acme/empty")
    problem = hub_site.fails("acme/empty")
    assert (problem.code, type(problem)) == ("no_tasks_selected", UsageError)


def test_withdrawn_versions_are_a_warning(hub_site: HubSite) -> None:
    hub_site.version.yanked = "wrong \x1b[2J licence"
    hub_site.version.tasks[1].yanked = ""
    listed = hub_site.source().list()
    found = hub_site.load()
    assert [warning.code for warning in listed.warnings] == ["version_yanked"]
    assert [warning.code for warning in found.warnings] == ["version_yanked", "version_yanked"]
    assert "licence" in found.warnings[0].message
    assert found.warnings[0].message.isprintable()
    assert [warning.task for warning in found.warnings] == ["", "acme/task-0001"]
    assert found.warnings[0].file == f"{NAME}@sha256:{hub_site.version.digest}"


def test_a_task_that_resolves_to_something_else_is_refused(hub_site: HubSite) -> None:
    first, second, third = hub_site.version.tasks
    first.says = third.digest
    second.archive = "packages/../../secret"
    del hub_site.hub.objects[third.archive]
    problem = hub_site.fails()
    assert [item.task for item in problem.items] == [first.name, second.name, third.name]
    messages = [item.message for item in problem.items]
    assert third.digest in messages[0]
    assert "is no place" in messages[1]
    assert "no archive on the Hub" in messages[2]
    assert hub_site.hub.downloads() == [line for line in hub_site.hub.downloads() if "0002" in line]


def test_a_task_of_the_dataset_that_the_hub_does_not_know(hub_site: HubSite) -> None:
    from tests.support.hub_server import Fault

    hub_site.hub.faults.append(Fault("rpc/resolve_task_version", status=200, body=b"null", times=9))
    assert "no such version" in hub_site.fails().items[0].message


def test_an_archive_without_an_end_is_given_up(hub_site: HubSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_client, "LARGEST_ARCHIVE", 100)
    assert "an archive of more than 100 bytes" in hub_site.fails().items[0].message


def test_tasks_of_two_organisations_with_one_short_name_have_folders_of_their_own(hub_site: HubSite) -> None:
    other = make_suite(hub_site.home / "other", tasks=1, org="zeta") / "task-0000"
    version = hub_site.hub.publish("acme/both", *hub_site.folders, other)
    found = hub_site.load("acme/both")
    assert [(task.name, task.folder) for task in found] == [
        ("acme/task-0000", "acme@task-0000"),
        ("acme/task-0001", "task-0001"),
        ("acme/task-0002", "task-0002"),
        ("zeta/task-0000", "zeta@task-0000"),
    ]
    version.tasks.reverse()
    assert hub_site.source("acme/both").list().ref == found.ref


def test_a_big_dataset_comes_in_pages(hub_site: HubSite) -> None:
    from tests.support.hub_server import DatasetVersion, TaskVersion

    tasks = [TaskVersion(f"acme/t{number}", f"{number:064x}", "x") for number in range(2500)]
    version = DatasetVersion("acme/big", 1, "", tasks, tags=["latest"])
    rehash(version)
    hub_site.hub.versions.append(version)
    assert hub_site.source("acme/big").list().total == 2500


def test_the_digest_of_a_dataset_is_harbors() -> None:
    from harbor.models.dataset.manifest import DatasetFileRef, DatasetInfo, DatasetManifest, DatasetTaskRef

    from argo_harbor.sources.hub.dataset import HubTask, dataset_digest

    tasks = [HubTask(f"acme/t{number}", f"{9 - number:064x}") for number in range(9)]
    files = [("b.md", "b" * 64), ("a.md", "a" * 64)]
    for some in ([], files):
        manifest = DatasetManifest(
            dataset=DatasetInfo(name="acme/x"),
            tasks=[DatasetTaskRef(name=task.name, digest=f"sha256:{task.digest}") for task in tasks],
            files=[DatasetFileRef(path=path, digest=f"sha256:{digest}") for path, digest in some],
        )
        assert dataset_digest(tasks, some) == manifest.compute_content_hash()


def test_a_cache_that_takes_nothing_is_named(hub_site: HubSite) -> None:
    (hub_site.home / ".cache").write_text("no folder")
    problem = hub_site.fails()
    assert (problem.code, type(problem)) == ("source_unreadable", Refused)
    assert "cannot be kept in Harbor's cache" in problem.items[0].message
    assert "HOME" in problem.hint


def test_a_full_disk_is_no_fault_of_the_hub(hub_site: HubSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argo_harbor.sources.hub.tasks.program_folder", lambda _: hub_site.home / "absent")
    problem = hub_site.fails()
    assert not isinstance(problem, PlatformError)
    assert "cannot be written here" in problem.items[0].message
    assert "TMPDIR" in problem.hint
