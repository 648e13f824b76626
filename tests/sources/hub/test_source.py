"""Datasets that are as they should be: versions, selections, and Harbor's cache."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from argo_harbor.errors import Refused, UsageError
from argo_harbor.model.taskset import TasksetMember
from argo_harbor.sources.directory import DirectorySource
from argo_harbor.sources.hub import cache as hub_cache
from argo_harbor.sources.unpack import unpack
from tests.support.fixtures_hub import HubSite

pytestmark = [
    pytest.mark.remote,
    pytest.mark.filterwarnings("ignore:The '.*' parameter is deprecated:DeprecationWarning"),
]


def test_a_dataset_is_the_suite_that_was_published(hub_site: HubSite) -> None:
    found, here = hub_site.load(), DirectorySource(hub_site.suite).load()
    assert (found.ref, found.tasks, found.members, found.total) == (
        here.ref,
        here.tasks,
        here.members,
        here.total,
    )
    pinned = f"acme/mini@sha256:{hub_site.version.digest}"
    assert found.origin is not None
    assert (found.origin.pinned, found.origin.label) == (pinned, pinned)
    assert any(pinned in line for line in hub_site.said)
    assert any("verifier code that will run" in line for line in hub_site.said)
    assert all(task.root is not None and task.root.is_relative_to(hub_site.cache) for task in found)


def test_a_tag_a_revision_and_a_digest_name_versions(hub_site: HubSite) -> None:
    old = hub_site.version
    new = hub_site.hub.publish("acme/mini", *hub_site.folders[:2])
    old.tags.append("stable")
    for ref, version in {
        "": new,
        "@latest": new,
        "@2": new,
        f"@sha256:{new.digest}": new,
        "@stable": old,
        "@1": old,
        f"@sha256:{old.digest}": old,
    }.items():
        listing = hub_site.source(f"acme/mini{ref}").list()
        assert listing.origin is not None
        assert listing.origin.pinned == f"acme/mini@sha256:{version.digest}"
        assert listing.total == len(version.tasks)


def test_a_listing_downloads_nothing_and_a_selection_only_what_it_names(hub_site: HubSite) -> None:
    listing = hub_site.source().list("2,*-0000")
    assert [(index, task.name) for index, task in listing.tasks] == [
        (0, "acme/task-0000"),
        (2, "acme/task-0002"),
    ]
    assert listing.total == 3
    assert hub_site.hub.downloads() == []
    found = hub_site.load(tasks=[2])
    assert [(task.index, task.name) for task in found] == [(2, "acme/task-0002")]
    assert (found.ref, found.total) == (listing.ref, 3)
    assert len(hub_site.hub.downloads()) == 1
    with pytest.raises(UsageError, match="task-9") as caught:
        hub_site.load(tasks="task-9")
    assert caught.value.code == "unknown_tasks"
    assert len(hub_site.hub.downloads()) == 1


def test_what_is_in_the_cache_is_not_fetched_again(hub_site: HubSite) -> None:
    hub_site.load(tasks="0")
    found = hub_site.load()
    assert len(hub_site.hub.downloads()) == 3
    assert "Fetching 2 of 3 tasks; the others are in Harbor's cache" in hub_site.said
    assert hub_site.load() == found
    assert len(hub_site.hub.downloads()) == 3


def test_the_cache_is_harbors_own(hub_site: HubSite) -> None:
    from harbor.models.task.id import PackageTaskId
    from harbor.tasks.client import TaskClient

    ids: list[Any] = [
        PackageTaskId(org="acme", name=task.name.partition("/")[2], ref=f"sha256:{task.digest}")
        for task in hub_site.version.tasks
    ]
    asyncio.run(TaskClient().download_tasks(ids[:1]))
    before = len(hub_site.hub.downloads())
    found = hub_site.load(tasks=[0, 1])
    assert len(hub_site.hub.downloads()) == before + 1
    got = asyncio.run(TaskClient().download_tasks(ids[1:2]))
    assert [(result.cached, result.path) for result in got.results] == [(True, found.tasks[1].root)]


def _edit(place: Path) -> None:
    (place / "instruction.md").write_text("be lazy\n")


def _add(place: Path) -> None:
    (place / "tests/more.sh").write_text("echo 1 > /logs/verifier/reward.txt\n")


def _halve(place: Path) -> None:
    (place / "task.toml").unlink()


def _break(place: Path) -> None:
    (place / "task.toml").write_text("[task")


def _replace_by_a_file(place: Path) -> None:
    shutil.rmtree(place)
    place.write_text("")


def _replace_by_a_link(place: Path) -> None:
    elsewhere = place.parent / "elsewhere"
    shutil.move(place, elsewhere)
    place.symlink_to("elsewhere")
    _edit(elsewhere)


@pytest.mark.parametrize("change", [_edit, _add, _halve, _break, _replace_by_a_file, _replace_by_a_link])
def test_a_copy_that_was_changed_is_fetched_again(hub_site: HubSite, change: Any) -> None:
    found = hub_site.load()
    root = found.tasks[1].root
    assert root is not None
    change(root)
    assert hub_site.load() == found
    assert len(hub_site.hub.downloads()) == 4
    assert hub_site.said[-1].endswith("; 1 had a copy there that was changed")
    assert root.is_dir()
    assert not root.is_symlink()
    assert [path.name for path in root.parent.iterdir() if path.name.startswith(".")] == []


def test_a_copy_that_cannot_be_read_is_none(hub_site: HubSite, monkeypatch: pytest.MonkeyPatch) -> None:
    found = hub_site.load()
    root = found.tasks[0].root
    assert root is not None
    _break(root)

    def unreadable(path: str, **_: bool) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(hub_cache, "read_tree", unreadable)
    assert hub_site.load() == found


def test_another_program_may_be_quicker(hub_site: HubSite, monkeypatch: pytest.MonkeyPatch) -> None:
    def unpack_and_lose(archive: Path, dest: Path, *, digest: str, foreign: bool) -> None:
        unpack(archive, dest, digest=digest, foreign=foreign)
        (place,) = [task for task in hub_site.version.tasks if task.digest == digest]
        shutil.copytree(dest, hub_site.cache / place.name / digest)

    monkeypatch.setattr(hub_cache, "unpack", unpack_and_lose)
    monkeypatch.setattr(hub_cache.HubCache, "has_some", lambda *_: False)
    assert hub_site.load().tasks == DirectorySource(hub_site.suite).load().tasks


def test_a_copy_that_is_changed_at_once_is_not_used(
    hub_site: HubSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = hub_cache.HubCache.keep

    def keep(cache: hub_cache.HubCache, task: TasksetMember, archive: Path) -> None:
        real(cache, task, archive)
        _edit(cache.path(task))

    monkeypatch.setattr(hub_cache.HubCache, "keep", keep)
    with pytest.raises(Refused) as caught:
        hub_site.load()
    assert (caught.value.code, len(caught.value.items)) == ("source_changed", 3)


def test_a_changed_copy_is_never_used_when_the_hub_has_no_other(hub_site: HubSite) -> None:
    root = hub_site.load().tasks[0].root
    assert root is not None
    _edit(root)
    hub_site.hub.objects.clear()
    problem = hub_site.fails()
    assert (problem.code, problem.items[0].task) == ("source_unreadable", "acme/task-0000")
    assert "no archive on the Hub" in problem.message


def test_what_is_wrong_in_tasks_is_found_in_all_of_them_and_fetched_once(hub_site: HubSite) -> None:
    broken = shutil.copytree(hub_site.suite, hub_site.home / "broken")
    for folder in sorted(broken.iterdir())[:2]:
        (folder / "tests/test.sh").unlink()
    hub_site.hub.publish("acme/mini", *sorted(broken.iterdir()))
    for _ in range(2):
        problem = hub_site.fails()
        assert isinstance(problem, Refused)
        assert {item.task for item in problem.items} == {"acme/task-0000", "acme/task-0001"}
        assert {item.code for item in problem.items} == {"invalid_task_config"}
    assert len(hub_site.hub.downloads()) == 3
